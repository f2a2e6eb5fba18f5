// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sleepable RCU of hosted kernels; an experiment has it if its file `objects`
 * says ream/srcu.o.
 */
#include <linux/percpu.h>
#include <linux/srcu.h>
#include "kernel.h"

/* As the kernel's: a CPU counts its own readers in and out. */
int __srcu_read_lock(struct srcu_struct *ssp)
{
	int index = READ_ONCE(ssp->srcu_idx) & 0x1;

	HOST_STUB("duplicated");
	this_cpu_inc(ssp->sda->srcu_lock_count[index].counter);
	smp_mb();	/* The section's accesses come after it is counted. */
	return index;
}

void __srcu_read_unlock(struct srcu_struct *ssp, int index)
{
	HOST_STUB("duplicated");
	smp_mb();	/* And before it is counted out. */
	this_cpu_inc(ssp->sda->srcu_unlock_count[index].counter);
}

/* Unlocks first: a reader that begins and ends in between must not hide one. */
static bool has_readers(struct srcu_struct *ssp, int index)
{
	unsigned long unlocks = 0, locks = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		unlocks += atomic_long_read(&per_cpu_ptr(ssp->sda, cpu)->srcu_unlock_count[index]);
	smp_mb();	/* Pairs with those of the readers. */
	for_each_possible_cpu(cpu)
		locks += atomic_long_read(&per_cpu_ptr(ssp->sda, cpu)->srcu_lock_count[index]);
	return locks != unlocks;
}

/*
 * The kernel turns readers to the other index and lets a work queue count; here
 * the caller waits until there is a moment without any reader.
 */
void synchronize_srcu(struct srcu_struct *ssp)
{
	int index;

	HOST_STUB("custom");
	smp_mb();	/* What the caller has taken away is gone for new readers. */
	for (index = 0; index < 2; index++)
		while (has_readers(ssp, index))
			host_yield();
}
