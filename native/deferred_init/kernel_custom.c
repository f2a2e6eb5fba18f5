// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the deferred-init experiment: functions that are deliberately not the
 * kernel's, and how each differs. See native/host/kernel/kernel.h for the
 * kinds.
 */
#include <linux/completion.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include "kernel.h"
#include "deferred_kernel.h"

bool deferred_shares_cpus;

/*
 * The kernel's queued spinlock, its slow path included, without what the
 * kernel's kernel/locking/spinlock.o does around it: a program may not touch
 * the interrupt flag, and it need not, since no interrupt handler or softirq
 * runs on its threads that could want the same lock. A lock taken costs two
 * instructions on that flag less here than in a kernel, for all variants.
 *
 * Where CPUs share a real one, a queue would wait for whoever does not run
 * just now, every time: then it is test and set, as virt_spin_lock() is in a
 * guest and for that reason, and who waits gives way.
 */
static void take(raw_spinlock_t *lock)
{
	if (!deferred_shares_cpus) {
		do_raw_spin_lock(lock);
		return;
	}
	while (!do_raw_spin_trylock(lock))
		host_yield();
}

void __lockfunc _raw_spin_lock(raw_spinlock_t *lock)
{
	HOST_STUB("custom");
	take(lock);
}

unsigned long __lockfunc _raw_spin_lock_irqsave(raw_spinlock_t *lock)
{
	HOST_STUB("custom");
	take(lock);
	return 0;
}

void __lockfunc _raw_spin_unlock_irqrestore(raw_spinlock_t *lock,
					    unsigned long flags)
{
	HOST_STUB("custom");
	do_raw_spin_unlock(lock);
}

void __lockfunc _raw_spin_lock_bh(raw_spinlock_t *lock)
{
	HOST_STUB("custom");
	take(lock);
}

void __lockfunc _raw_spin_unlock_bh(raw_spinlock_t *lock)
{
	HOST_STUB("custom");
	do_raw_spin_unlock(lock);
}

/*
 * The wait queue of @x is not used: who waits sleeps on the count itself, by
 * the host's kernel. As there, a wakeup costs what a thread's wakeup costs.
 */
void complete(struct completion *x)
{
	unsigned int *done = &x->done;

	HOST_STUB("custom");
	/*
	 * Release: what was done before is seen by who reads the count. From
	 * here on the waiter may be gone, and @x with it.
	 */
	__atomic_fetch_add(done, 1, __ATOMIC_RELEASE);
	host_wake(done);
}

void wait_for_completion(struct completion *x)
{
	unsigned int done = READ_ONCE(x->done);

	HOST_STUB("custom");
	for (;;) {
		if (!done) {
			host_sleep(&x->done, 0);
			done = READ_ONCE(x->done);
		} else if (__atomic_compare_exchange_n(&x->done, &done, done - 1,
						       false, __ATOMIC_ACQUIRE,
						       __ATOMIC_RELAXED)) {
			return;
		}
	}
}

/* A pool thread stays on the CPU it is pinned to. */
int set_cpus_allowed_ptr(struct task_struct *task, const struct cpumask *mask)
{
	HOST_STUB("custom");
	return 0;
}

/*
 * The kernel's own has alternatives that native/host/alternatives.c cannot
 * apply. Only memblock moves memory here, while glue.c fills it.
 */
void *memmove(void *to, const void *from, size_t bytes)
{
	void *at = to;

	HOST_STUB("custom");
	if (to <= from) {
		asm volatile("rep movsb"
			     : "+D" (at), "+S" (from), "+c" (bytes)
			     : : "memory");
		return to;
	}
	at += bytes - 1;
	from += bytes - 1;
	asm volatile("std; rep movsb; cld"
		     : "+D" (at), "+S" (from), "+c" (bytes)
		     : : "memory");
	return to;
}
