// SPDX-License-Identifier: GPL-2.0-only
/* Replacements for functions of several parts of the kernel. */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/thread_info.h>
#include "hosted.h"

int proc_alloc_inum(unsigned int *number)
{
	HOST_STUB("custom");
	*number = 1;
	return 0;
}

char *__get_task_comm(char *to, size_t bytes, struct task_struct *task)
{
	HOST_STUB("duplicated");
	strscpy(to, task->comm, bytes);
	return to;
}

bool __virt_addr_valid(unsigned long address)
{
	HOST_STUB("custom");
	return is_ram(address >> PAGE_SHIFT);
}

#ifdef CONFIG_SCHED_CACHE
/* kernel/sched/fair.c: nothing here uses these counters, but their memory counts. */
int mm_init_sched(struct mm_struct *mm, struct sched_cache_time __percpu *counters)
{
	HOST_STUB("custom");
	mm->sched_cache_grp = kzalloc(sizeof(*mm->sched_cache_grp), GFP_KERNEL);
	if (!mm->sched_cache_grp) {
		free_percpu(counters);
		return -ENOMEM;
	}
	mm->sched_cache_grp->pcpu_sched = counters;
	return 0;
}

static void free_sched(struct rcu_head *head)
{
	struct sched_cache_group *group = container_of(head, struct sched_cache_group, rcu);

	free_percpu(group->pcpu_sched);
	kfree(group);
}

void mm_destroy_sched(struct mm_struct *mm)
{
	HOST_STUB("custom");
	if (mm->sched_cache_grp)
		call_rcu(&mm->sched_cache_grp->rcu, free_sched);
	mm->sched_cache_grp = NULL;
}
#endif
