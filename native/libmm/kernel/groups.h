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

int set_group_limit(int number, unsigned long nr_pages);

#endif
