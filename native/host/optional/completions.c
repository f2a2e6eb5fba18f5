// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completions of hosted kernels, which deliberately differ from the kernel's own.
 * An experiment uses them if its file `objects` lists ream/completions.o.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/swait.h>
#include <linux/time64.h>
#include "interrupts.h"
#include "kernel.h"

static unsigned long (*take_interrupts)(void);

void host_set_interrupts(unsigned long (*take)(void))
{
	take_interrupts = take;
}

unsigned long host_take_interrupts(void)
{
	return take_interrupts ? take_interrupts() : ULONG_MAX;
}

/* Waiters for a completion do not use this queue. */
void __init_swait_queue_head(struct swait_queue_head *queue, const char *name,
			     struct lock_class_key *key)
{
	HOST_STUB("stubbed");
}

/*
 * The wait queue of @x is not used: waiters sleep on the count itself, by a futex.
 * As in a kernel, a wakeup costs as much as waking a thread.
 */
void complete(struct completion *x)
{
	unsigned int *done = &x->done;

	HOST_STUB("custom");
	BUILD_BUG_ON(sizeof(*done) != sizeof(atomic_t));
	/*
	 * Release: pairs with the acquire of the waiter, which then sees all
	 * earlier stores. After this the waiter may have freed @x.
	 */
	atomic_fetch_add_release(1, (atomic_t *)done);
	host_wake(done);
}

/* Sleep until the count is not 0, or until @end_ns. Taking an interrupt may change it. */
static void sleep_until(unsigned int *done, unsigned long end_ns)
{
	unsigned long now_ns;

	end_ns = min(end_ns, host_take_interrupts());
	if (READ_ONCE(*done))
		return;
	if (end_ns == ULONG_MAX) {
		host_sleep(done, 0);
		return;
	}
	now_ns = host_now_ns();
	if (now_ns < end_ns)
		host_sleep_for(done, 0, end_ns - now_ns);
}

void wait_for_completion(struct completion *x)
{
	unsigned int done = READ_ONCE(x->done);

	HOST_STUB("custom");
	for (;;) {
		if (!done) {
			sleep_until(&x->done, ULONG_MAX);
			done = READ_ONCE(x->done);
		} else if (try_cmpxchg_acquire(&x->done, &done, done - 1)) {
			return;
		}
	}
}

#define NS_PER_JIFFY (NSEC_PER_SEC / HZ)

/* Jiffies do not advance here, so the remaining time is always returned as 1. */
unsigned long wait_for_completion_timeout(struct completion *x,
					  unsigned long timeout)
{
	unsigned long end_ns = host_now_ns() + timeout * NS_PER_JIFFY;
	unsigned int done = READ_ONCE(x->done);

	HOST_STUB("custom");
	for (;;) {
		if (done && try_cmpxchg_acquire(&x->done, &done, done - 1))
			return 1;
		if (done)
			continue;
		if (host_now_ns() >= end_ns)
			return 0;
		sleep_until(&x->done, end_ns);
		done = READ_ONCE(x->done);
	}
}
