/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory cgroups: the root, and its children, which programs create. */
#ifndef REAM_GROUPS_H
#define REAM_GROUPS_H

#include <linux/cgroup.h>

#define MOST_GROUPS 8	/* including the root, which is number 0 */

void start_groups(void);

/* Create the next group. Return: its number, or an error. */
int make_group(void);

/* The css_set, memcg and hugetlb_cgroup of a group. NULL if there is no such group. */
struct css_set *set_of_group(int number);
struct mem_cgroup *memory_of_group(int number);
struct cgroup_subsys_state *huge_pages_of_group(int number);	/* a struct hugetlb_cgroup */

/* Charge a task's slab objects to its group, and stop that for the current task. */
void charge_objects_of(struct task_struct *task);
void charge_objects_no_more(void);

/* Flush the per-CPU counts into the counters of all groups. */
void sum_up_groups(void);

int set_group_limit(int number, unsigned long nr_pages);

#endif
