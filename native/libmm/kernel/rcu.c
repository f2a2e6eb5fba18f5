// SPDX-License-Identifier: GPL-2.0-only
/*
 * RCU. Grace periods end when no task can run. No task is in a read-side
 * critical section then, because readers do not sleep.
 */
#include <linux/rcupdate.h>
#include <linux/rcuwait.h>
#include <linux/slab.h>
#include <linux/srcu.h>
#include <linux/vmalloc.h>
#include "hosted.h"

#define LARGEST_OFFSET 4096UL	/* of the rcu_head in an object of kfree_rcu() */

static struct rcu_head *waiting, **waiting_end = &waiting;
static unsigned long nr_srcu_readers;
int rcu_scheduler_active = 2;	/* RCU_SCHEDULER_RUNNING, kernel/rcu/rcu.h */

static void add(struct rcu_head *head)
{
	head->next = NULL;
	*waiting_end = head;
	waiting_end = &head->next;
}

void call_rcu(struct rcu_head *head, rcu_callback_t function)
{
	HOST_STUB("custom");
	head->func = function;
	add(head);
}

static void call_back(struct rcu_head *head)
{
	unsigned long function = (unsigned long)head->func;

	/* kvfree_call_rcu() stores the offset of the head in place of a function. */
	if (function < LARGEST_OFFSET)
		kvfree((void *)head - function);
	else
		head->func(head);
}

bool end_grace_period(void)
{
	struct rcu_head *head = waiting, *next;

	if (!head)
		return false;
	waiting = NULL;
	waiting_end = &waiting;
	for (; head; head = next) {
		next = head->next;
		call_back(head);
	}
	return true;
}

void rcu_barrier(void)
{
	HOST_STUB("custom");
	while (end_grace_period())
		;
}

#ifndef CONFIG_KVFREE_RCU_BATCHED	/* otherwise mm/slab_common.c has its own */
void kvfree_call_rcu(struct rcu_head *head, void *object)
{
	HOST_STUB("custom");
	if (!head) {
		kvfree(object);
		return;
	}
	call_rcu(head, (rcu_callback_t)((void *)head - object));
}

void kvfree_rcu_barrier(void)
{
	HOST_STUB("custom");
	rcu_barrier();
}
#endif

/* --- nesting of readers, and SRCU -------------------------------------- */

#ifdef CONFIG_PREEMPT_RCU
/* kernel/rcu/tree_plugin.h, for the case that no grace period waits for a reader. */
void __rcu_read_lock(void)
{
	HOST_STUB("duplicated");
	WRITE_ONCE(current->rcu_read_lock_nesting, current->rcu_read_lock_nesting + 1);
	barrier();
}

void __rcu_read_unlock(void)
{
	HOST_STUB("duplicated");
	barrier();
	WRITE_ONCE(current->rcu_read_lock_nesting, current->rcu_read_lock_nesting - 1);
	if (!READ_ONCE(current->rcu_read_lock_nesting))
		WARN_ON(READ_ONCE(current->rcu_read_unlock_special.s));
}
#endif

int __srcu_read_lock(struct srcu_struct *srcu)
{
	HOST_STUB("custom");
	nr_srcu_readers++;
	return 0;
}

void __srcu_read_unlock(struct srcu_struct *srcu, int index)
{
	HOST_STUB("custom");
	nr_srcu_readers--;
}

void synchronize_srcu(struct srcu_struct *srcu)
{
	HOST_STUB("custom");
	while (nr_srcu_readers)
		schedule();
}

void synchronize_srcu_expedited(struct srcu_struct *srcu)
{
	HOST_STUB("custom");
	synchronize_srcu(srcu);
}

void call_srcu(struct srcu_struct *srcu, struct rcu_head *head, rcu_callback_t function)
{
	HOST_STUB("custom");
	call_rcu(head, function);
}

void srcu_barrier(struct srcu_struct *srcu)
{
	HOST_STUB("custom");
	rcu_barrier();
}

/* --- others ------------------------------------------------------------ */

int rcuwait_wake_up(struct rcuwait *wait)
{
	struct task_struct *task = rcu_dereference_protected(wait->task, true);

	HOST_STUB("duplicated");
	return task ? wake_up_process(task) : 0;
}

void finish_rcuwait(struct rcuwait *wait)
{
	HOST_STUB("duplicated");
	rcu_assign_pointer(wait->task, NULL);
	__set_current_state(TASK_RUNNING);
}
