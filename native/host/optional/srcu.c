// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sleepable RCU of hosted kernels. An experiment uses it if its file `objects`
 * lists ream/srcu.o.
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

/* Index of the counters that new readers use. */
static int current_index(struct srcu_struct *ssp)
{
#ifdef HAVE_SRCU_CTRP
	return __srcu_ptr_to_ctr(ssp, READ_ONCE(ssp->srcu_ctrp));
#else
	return READ_ONCE(ssp->srcu_idx) & 0x1;
#endif
}

/* As in the kernel, each CPU counts the readers that enter and leave. */
int __srcu_read_lock(struct srcu_struct *ssp)
{
	int index = current_index(ssp);

	HOST_STUB("duplicated");
	this_cpu_inc(NR_LOCKS(ssp->sda, index).counter);
	smp_mb();	/* Order the increment before accesses in the section. */
	return index;
}

void __srcu_read_unlock(struct srcu_struct *ssp, int index)
{
	HOST_STUB("duplicated");
	smp_mb();	/* Order accesses in the section before the increment. */
	this_cpu_inc(NR_UNLOCKS(ssp->sda, index).counter);
}

/* Sum up unlocks first, so that a reader that enters and leaves meanwhile hides no other. */
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
 * The kernel flips the index for new readers and lets a workqueue count the old
 * ones. Here the caller waits until there are no readers.
 */
void synchronize_srcu(struct srcu_struct *ssp)
{
	int index;

	HOST_STUB("custom");
	smp_mb();	/* Order the caller's removal before reading the counts. */
	for (index = 0; index < 2; index++)
		while (has_readers(ssp, index))
			host_yield();
}
