// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sleepable RCU of hosted kernels; an experiment has it if its file `objects`
 * says ream/srcu.o.
 */
#include <linux/percpu.h>
#include <linux/srcu.h>
#include "kernel.h"

#ifdef HAVE_SRCU_CTRP
#define NR_LOCKS(sda, index) ((sda)->srcu_ctrs[index].srcu_locks)
#define NR_UNLOCKS(sda, index) ((sda)->srcu_ctrs[index].srcu_unlocks)
#else
#define NR_LOCKS(sda, index) ((sda)->srcu_lock_count[index])
#define NR_UNLOCKS(sda, index) ((sda)->srcu_unlock_count[index])
#endif

/* For which of the two counts new readers are. */
static int current_index(struct srcu_struct *ssp)
{
#ifdef HAVE_SRCU_CTRP
	return __srcu_ptr_to_ctr(ssp, READ_ONCE(ssp->srcu_ctrp));
#else
	return READ_ONCE(ssp->srcu_idx) & 0x1;
#endif
}

/* As the kernel's: a CPU counts its own readers in and out. */
int __srcu_read_lock(struct srcu_struct *ssp)
{
	int index = current_index(ssp);

	HOST_STUB("duplicated");
	this_cpu_inc(NR_LOCKS(ssp->sda, index).counter);
	smp_mb();	/* The section's accesses come after it is counted. */
	return index;
}

void __srcu_read_unlock(struct srcu_struct *ssp, int index)
{
	HOST_STUB("duplicated");
	smp_mb();	/* And before it is counted out. */
	this_cpu_inc(NR_UNLOCKS(ssp->sda, index).counter);
}

/* Unlocks first: a reader that begins and ends in between must not hide one. */
static bool has_readers(struct srcu_struct *ssp, int index)
{
	unsigned long unlocks = 0, locks = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		unlocks += atomic_long_read(&NR_UNLOCKS(per_cpu_ptr(ssp->sda, cpu), index));
	smp_mb();	/* Pairs with those of the readers. */
	for_each_possible_cpu(cpu)
		locks += atomic_long_read(&NR_LOCKS(per_cpu_ptr(ssp->sda, cpu), index));
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
