// SPDX-License-Identifier: GPL-2.0-only
/*
 * RCU of a kernel that one thread runs, deliberately not the kernel's own.
 *
 * There is no other reader, so a grace period has passed as soon as it is waited
 * for: callbacks that were queued before then run, on the thread that waits. A
 * booted kernel waits for milliseconds there, which no row times.
 */
#include <linux/completion.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include "interrupts.h"
#include "kernel.h"
#include "remap_kernel.h"

#ifndef HAVE_KVFREE_RCU_HEAD
#define kvfree_rcu_head rcu_head
#endif

static struct rcu_head *first;
static struct rcu_head **end = &first;

/* Objects to be freed, by some place within each, which has room for this alone. */
struct freed {
	struct freed *next;
};

static struct freed *first_freed;

/* What callbacks queue is of the next grace period. */
static bool end_grace_period(void)
{
	struct rcu_head *head = first, *next;
	struct freed *freed = first_freed, *next_freed;

	first = NULL;
	end = &first;
	first_freed = NULL;
	for (; head; head = next) {
		next = head->next;
		head->func(head);
	}
	for (; freed; freed = next_freed) {
		next_freed = freed->next;
		remap_free_around(freed);
	}
	return first || first_freed;
}

void call_rcu(struct rcu_head *head, rcu_callback_t func)
{
	HOST_STUB("custom");
	head->func = func;
	head->next = NULL;
	*end = head;
	end = &head->next;
}

/* The kernel gathers these by pages, or by sheaves, and frees them from a work queue. */
void kvfree_call_rcu(struct kvfree_rcu_head *head, void *object)
{
	struct freed *freed = (void *)head;

	HOST_STUB("custom");
	freed->next = first_freed;
	first_freed = freed;
}

void synchronize_rcu(void)
{
	HOST_STUB("custom");
	end_grace_period();
}

/* Called to wait for a completion that a callback completes. */
static unsigned long end_while_waiting(void)
{
	end_grace_period();
	return ULONG_MAX;
}

void remap_begin_rcu(void)
{
	host_set_interrupts(end_while_waiting);
}

void remap_end_rcu(void)
{
	while (end_grace_period())
		;
}
