// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spinlocks of hosted kernels, which deliberately differ from the kernel's own.
 * An experiment uses them if its file `objects` lists ream/locks.o.
 */
#include <linux/spinlock.h>
#include "kernel.h"
#include "locks.h"

bool host_shares_cpus;
void (*host_lock_taken)(const raw_spinlock_t *lock, bool interrupts_off);
DEFINE_PER_CPU(bool, host_interrupts_off);

/*
 * This is the kernel's queued spinlock, including its slow path, but without what
 * kernel/locking/spinlock.o does around it. A program cannot change the interrupt
 * flag, and need not: no interrupt handler or softirq that could take the same
 * lock runs on its threads. For all variants, a lock takes two instructions less
 * here than in a kernel.
 *
 * If CPUs share a real one, a queued lock would always wait for a CPU that is not
 * running. It is then a test-and-set lock, as virt_spin_lock() is in a guest for
 * the same reason, and waiters yield.
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

/* Report a lock. Return: whether interrupts were off before, as a kernel would save. */
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
/* It is out of line in kernels with a preemption count, and inline otherwise. */
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
