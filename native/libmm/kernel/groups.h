/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory cgroups: the root, and children of it that programs make. */
#ifndef REAM_GROUPS_H
#define REAM_GROUPS_H

#include <linux/cgroup.h>

#define MOST_GROUPS 8	/* with the root, which is number 0 */

void start_groups(void);

/* Make the next group; its number, or an error. */
int make_group(void);

/* What holds a task in a group; NULL: there is none of this number. */
struct css_set *set_of_group(int number);
struct mem_cgroup *memory_of_group(int number);
struct cgroup_subsys_state *huge_pages_of_group(int number);	/* a struct hugetlb_cgroup */

/* The group of a task pays for its objects of slabs, too; and that of the current one does not. */
void charge_objects_of(struct task_struct *task);
void charge_objects_no_more(void);

/* Have counters of all groups say what CPUs have added to them so far. */
void sum_up_groups(void);

int set_group_limit(int number, unsigned long nr_pages);

#endif
