// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completions of hosted kernels, deliberately not the kernel's own; an
 * experiment has them if its file `objects` says ream/completions.o.
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

/* Who waits for a completion does so without this queue. */
void __init_swait_queue_head(struct swait_queue_head *queue, const char *name,
			     struct lock_class_key *key)
{
	HOST_STUB("stubbed");
}

/*
 * The wait queue of @x is not used: who waits sleeps on the count itself, by
 * the host's kernel. As there, a wakeup costs what a thread's wakeup costs.
 */
void complete(struct completion *x)
{
	unsigned int *done = &x->done;

	HOST_STUB("custom");
	BUILD_BUG_ON(sizeof(*done) != sizeof(atomic_t));
	/*
	 * Release: what was done before is seen by who reads the count. From
	 * here on the waiter may be gone, and @x with it.
	 */
	atomic_fetch_add_release(1, (atomic_t *)done);
	host_wake(done);
}

/* Until the count is not 0, or later; an interrupt may be what changes it. */
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

/* Jiffies do not pass here: what is left of the time is said as 1. */
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
