// SPDX-License-Identifier: GPL-2.0-only
/*
 * For a fork as a call: functions that do nothing, and where that is right.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/memory.h>
#include <linux/mm_types.h>
#include <linux/node.h>
#include <linux/nsproxy.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#ifdef HAVE_EXEC_STATE
#include <linux/sched/exec_state.h>
#endif
#include <linux/shmem_fs.h>
#include <linux/sysctl.h>
#include <linux/workqueue.h>
#include <asm/mmu_context.h>
#include <asm/tlbflush.h>
#include "internal.h"
#include "kernel.h"

/* CPUs neither come nor go. */
void cpus_read_lock(void)
{
	HOST_STUB("stubbed");
}

void cpus_read_unlock(void)
{
	HOST_STUB("stubbed");
}

void lockdep_assert_cpus_held(void)
{
	HOST_STUB("stubbed");
}

int __cpuhp_setup_state(enum cpuhp_state state, const char *name, bool invoke,
			int (*startup)(unsigned int cpu),
			int (*teardown)(unsigned int cpu), bool multi_instance)
{
	HOST_STUB("stubbed");
	return 0;
}

/* Nor does memory. */
int register_memory_notifier(struct notifier_block *block)
{
	HOST_STUB("stubbed");
	return 0;
}

#ifdef HAVE_NODE_NOTIFIER
/* Nor do nodes. */
int register_node_notifier(struct notifier_block *block)
{
	HOST_STUB("stubbed");
	return 0;
}
#endif

#ifdef HAVE_HASH_POINTERS_FINALIZE
/* No pointer is printed. */
void hash_pointers_finalize(bool debugs)
{
	HOST_STUB("stubbed");
}
#endif

#ifdef HAVE_EXEC_STATE
/* Nobody executes a program. */
void __init exec_state_init(void)
{
	HOST_STUB("stubbed");
}
#endif

#ifdef HAVE_MM_INIT_SCHED
/* Nobody schedules, so no note has to be of which caches a process uses. */
int mm_init_sched(struct mm_struct *mm, struct sched_cache_time __percpu *times)
{
	HOST_STUB("stubbed");
	return 0;
}

void mm_destroy_sched(struct mm_struct *mm)
{
	HOST_STUB("stubbed");
}

void sched_cache_fork(struct task_struct *task)
{
	HOST_STUB("stubbed");
}
#endif

#ifdef HAVE_GLOBAL_ASID
/* None was ever given. */
void mm_free_global_asid(struct mm_struct *mm)
{
	HOST_STUB("stubbed");
}
#endif

#ifdef HAVE_CONST_CTL_TABLE
/* Nobody sets anything by /proc/sys. */
void __init __register_sysctl_init(const char *path, const struct ctl_table *table,
				   const char *name, size_t nr)
{
	HOST_STUB("stubbed");
}
#endif

/* A task of another namespace is not made. */
int __init nsproxy_cache_init(void)
{
	HOST_STUB("stubbed");
	return 0;
}

/* All per-CPU memory is taken back with the node. */
void free_percpu(void __percpu *pointer)
{
	HOST_STUB("stubbed");
}

/* It was done when it was queued: kernel_custom.c */
bool flush_work(struct work_struct *work)
{
	HOST_STUB("stubbed");
	return false;
}

/* No file is of shared memory alone. */
#ifdef HAVE_SHMEM_MAPPING_CONST
bool shmem_mapping(const struct address_space *mapping)
#else
bool shmem_mapping(struct address_space *mapping)
#endif
{
	HOST_STUB("stubbed");
	return false;
}

#ifdef HAVE_SHMEM_MAPPING_CONST
bool vma_is_anon_shmem(const struct vm_area_struct *vma)
#else
bool vma_is_anon_shmem(struct vm_area_struct *vma)
#endif
{
	HOST_STUB("stubbed");
	return false;
}

/* Nothing is mapped by vmalloc(). */
bool is_vmalloc_addr(const void *address)
{
	HOST_STUB("stubbed");
	return false;
}
