// SPDX-License-Identifier: GPL-2.0-only
/*
 * For memremap_pages(): functions that are not the kernel's own objects', and
 * how each differs. See native/host/kernel/kernel.h.
 */
#include <linux/cpu.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/percpu-rwsem.h>
#include <linux/rcuwait.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <asm/pgtable_types.h>
#include "kernel.h"

/* mm/mempolicy.c: the policy of the process would be asked for a node; there is one. */
struct page *alloc_pages_noprof(gfp_t flags, unsigned int order)
{
	HOST_STUB("custom");
	return alloc_pages_node_noprof(0, flags, order);
}

/* --- As the kernel's: kernel/cpu.c, kernel/rcu/update.c, set_memory.c --- */

DEFINE_STATIC_PERCPU_RWSEM(cpu_hotplug_lock);

void cpus_read_lock(void)
{
	HOST_STUB("duplicated");
	percpu_down_read(&cpu_hotplug_lock);
}

void cpus_read_unlock(void)
{
	HOST_STUB("duplicated");
	percpu_up_read(&cpu_hotplug_lock);
}

void finish_rcuwait(struct rcuwait *wait)
{
	HOST_STUB("duplicated");
	rcu_assign_pointer(wait->task, NULL);
	__set_current_state(TASK_RUNNING);
}

/* How much is mapped by entries of each size, for /proc/meminfo, which nobody reads here. */
void update_page_count(int level, unsigned long pages)
{
	static unsigned long direct_pages_count[PG_LEVEL_NUM];

	HOST_STUB("duplicated");
	spin_lock(&pgd_lock);
	direct_pages_count[level] += pages;
	spin_unlock(&pgd_lock);
}

/* --- As ream/locks.o: without what kernel/locking/spinlock.o does to interrupts ----- */

void __lockfunc _raw_read_lock(rwlock_t *lock)
{
	HOST_STUB("custom");
	do_raw_read_lock(lock);
}

void __lockfunc _raw_write_lock(rwlock_t *lock)
{
	HOST_STUB("custom");
	do_raw_write_lock(lock);
}

#ifdef CONFIG_UNINLINE_SPIN_UNLOCK
void __lockfunc _raw_read_unlock(rwlock_t *lock)
{
	HOST_STUB("custom");
	do_raw_read_unlock(lock);
}

void __lockfunc _raw_write_unlock(rwlock_t *lock)
{
	HOST_STUB("custom");
	do_raw_write_unlock(lock);
}
#endif
