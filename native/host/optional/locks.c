// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spinlocks of hosted kernels, deliberately not the kernel's own; an
 * experiment has them if its file `objects` says ream/locks.o.
 */
#include <linux/spinlock.h>
#include "kernel.h"
#include "locks.h"

bool host_shares_cpus;
void (*host_lock_taken)(const raw_spinlock_t *lock, bool interrupts_off);
DEFINE_PER_CPU(bool, host_interrupts_off);

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
	if (!host_shares_cpus) {
		do_raw_spin_lock(lock);
		return;
	}
	while (!do_raw_spin_trylock(lock))
		host_yield();
}

/* Returns what a kernel would have saved: whether interrupts were off before. */
static unsigned long show(const raw_spinlock_t *lock, bool turns_off)
{
	bool were_off = this_cpu_read(host_interrupts_off);

	this_cpu_write(host_interrupts_off, were_off || turns_off);
	host_lock_taken(lock, were_off || turns_off);
	return were_off;
}

void __lockfunc _raw_spin_lock(raw_spinlock_t *lock)
{
	HOST_STUB("custom");
	take(lock);
	if (unlikely(host_lock_taken))
		show(lock, false);
}

int __lockfunc _raw_spin_trylock(raw_spinlock_t *lock)
{
	bool taken = do_raw_spin_trylock(lock);

	HOST_STUB("custom");
	if (taken && unlikely(host_lock_taken))
		show(lock, false);
	return taken;
}

#ifdef CONFIG_UNINLINE_SPIN_UNLOCK
/* Kernels that keep a preemption count call it; else it is inline. */
void __lockfunc _raw_spin_unlock(raw_spinlock_t *lock)
{
	HOST_STUB("custom");
	do_raw_spin_unlock(lock);
}

void __lockfunc _raw_spin_unlock_irq(raw_spinlock_t *lock)
{
	HOST_STUB("custom");
	do_raw_spin_unlock(lock);
}
#endif

unsigned long __lockfunc _raw_spin_lock_irqsave(raw_spinlock_t *lock)
{
	HOST_STUB("custom");
	take(lock);
	return unlikely(host_lock_taken) ? show(lock, true) : 0;
}

void __lockfunc _raw_spin_unlock_irqrestore(raw_spinlock_t *lock,
					    unsigned long flags)
{
	HOST_STUB("custom");
	do_raw_spin_unlock(lock);
	if (unlikely(host_lock_taken))
		this_cpu_write(host_interrupts_off, flags);
}

void __lockfunc _raw_spin_lock_irq(raw_spinlock_t *lock)
{
	HOST_STUB("custom");
	take(lock);
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
