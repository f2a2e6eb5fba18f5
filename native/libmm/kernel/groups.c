// SPDX-License-Identifier: GPL-2.0-only
/*
 * cgroups without a file system. The memory controller's own functions create
 * each group, in the order in which kernel/cgroup/cgroup.c calls them.
 */
#include <linux/cgroup.h>
#include <linux/memcontrol.h>
#include <linux/page_counter.h>
#include <linux/percpu-refcount.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include "groups.h"
#include "hosted.h"
#include "patched.h"

extern struct cgroup_subsys memory_cgrp_subsys, hugetlb_cgrp_subsys;

DEFINE_MUTEX(cgroup_mutex);	/* keeps cgroups from coming or going */
struct css_set init_css_set;
struct cgroup_root cgrp_dfl_root;
struct static_key_true memory_cgrp_subsys_enabled_key = STATIC_KEY_TRUE_INIT;
struct static_key_true memory_cgrp_subsys_on_dfl_key = STATIC_KEY_TRUE_INIT;
struct static_key_true hugetlb_cgrp_subsys_enabled_key = STATIC_KEY_TRUE_INIT;
struct static_key_true hugetlb_cgrp_subsys_on_dfl_key = STATIC_KEY_TRUE_INIT;

static struct group {
	struct cgroup *cgroup;
	struct css_set set;
	struct cgroup_subsys_state *css;
	struct cgroup_subsys_state *huge;
} groups[MOST_GROUPS];
static int nr_groups;

static void released(struct percpu_ref *ref)
{
}

static void init_css(struct cgroup_subsys_state *css, struct cgroup_subsys *subsystem,
		     struct cgroup_subsys_state *parent, int number)
{
	css->ss = subsystem;
	css->parent = parent;
	css->id = number + 1;
	css->serial_nr = number + 1;
	css->flags |= CSS_VISIBLE;
	INIT_LIST_HEAD(&css->sibling);
	INIT_LIST_HEAD(&css->children);
	if (parent)
		list_add_tail_rcu(&css->sibling, &parent->children);
}

static int bring_online(struct cgroup_subsys_state *css, struct cgroup_subsys_state *parent,
			int number)
{
	int error;

	init_css(css, &memory_cgrp_subsys, parent, number);
	error = memory_cgrp_subsys.css_online(css);
	if (!error)
		css->flags |= CSS_ONLINE;
	return error;
}

/* Add the hugetlb controller to a group. It has no css_online(). */
static int add_huge_pages(struct group *group, struct cgroup *cgroup, struct css_set *set,
			  int number)
{
#ifdef CONFIG_CGROUP_HUGETLB
	struct cgroup_subsys_state *parent = number ? groups[0].huge : NULL, *css;

	css = hugetlb_cgrp_subsys.css_alloc(parent);
	if (IS_ERR(css))
		return PTR_ERR(css);
	init_css(css, &hugetlb_cgrp_subsys, parent, number);
	css->flags |= number ? CSS_ONLINE : CSS_ONLINE | CSS_NO_REF;
	css->cgroup = cgroup;
	set->subsys[hugetlb_cgrp_id] = css;
	group->huge = css;
	return number ? percpu_ref_init(&css->refcnt, released, 0, GFP_KERNEL) : 0;
#else
	return 0;
#endif
}

void start_groups(void)
{
	struct cgroup_subsys_state *css;

	init_css_set.dfl_cgrp = &cgrp_dfl_root.cgrp;
	init_task.cgroups = &init_css_set;
	if (wants_no_groups()) {
		static_branch_disable(&memory_cgrp_subsys_enabled_key);
		static_branch_disable(&hugetlb_cgrp_subsys_enabled_key);
		return;
	}
	css = memory_cgrp_subsys.css_alloc(NULL);
	css->flags = CSS_NO_REF;
	css->cgroup = &cgrp_dfl_root.cgrp;
	cgrp_dfl_root.cgrp.root = &cgrp_dfl_root;
	init_css_set.subsys[memory_cgrp_id] = css;
	groups[0].css = css;
	cgroup_add_dfl_cftypes(&memory_cgrp_subsys, memory_cgrp_subsys.dfl_cftypes);
	cgroup_add_legacy_cftypes(&memory_cgrp_subsys, memory_cgrp_subsys.legacy_cftypes);
	if (add_huge_pages(&groups[0], css->cgroup, &init_css_set, 0) ||
	    bring_online(css, NULL, nr_groups++))
		give_up("the root cgroup does not come up");
}

int make_group(void)
{
	struct group *group = &groups[nr_groups];
	struct cgroup_subsys_state *css;
	int error;

	if (!nr_groups || nr_groups == MOST_GROUPS)
		return -ENOSPC;
	css = memory_cgrp_subsys.css_alloc(groups[0].css);
	if (IS_ERR(css))
		return PTR_ERR(css);
	/* The array ancestors[] at its end holds the root and the group itself. */
	group->cgroup = host_alloc(sizeof(*group->cgroup) + 2 * sizeof(group->cgroup));
	css->cgroup = group->cgroup;
	group->cgroup->root = &cgrp_dfl_root;
	group->cgroup->level = 1;
	group->cgroup->ancestors[0] = &cgrp_dfl_root.cgrp;
	group->cgroup->ancestors[1] = group->cgroup;
	RCU_INIT_POINTER(group->cgroup->subsys[memory_cgrp_id], css);
	group->set.subsys[memory_cgrp_id] = css;
	group->set.dfl_cgrp = group->cgroup;
	group->css = css;
	error = percpu_ref_init(&css->refcnt, released, 0, GFP_KERNEL) ?:
		add_huge_pages(group, group->cgroup, &group->set, nr_groups) ?:
		bring_online(css, groups[0].css, nr_groups);
	return error ?: nr_groups++;
}

struct css_set *set_of_group(int number)
{
	if (number < 0 || number >= nr_groups)
		return NULL;
	return number ? &groups[number].set : &init_css_set;
}

struct mem_cgroup *memory_of_group(int number)
{
	if (number < 0 || number >= nr_groups)
		return NULL;
	return mem_cgroup_from_css(groups[number].css);
}

struct cgroup_subsys_state *huge_pages_of_group(int number)
{
	return number < 0 || number >= nr_groups ? NULL : groups[number].huge;
}

void charge_objects_of(struct task_struct *task)
{
	memory_cgrp_subsys.fork(task);
}

void charge_objects_no_more(void)
{
	memory_cgrp_subsys.exit(current);
}

int set_group_limit(int number, unsigned long nr_pages)
{
	return page_counter_set_max(&memory_of_group(number)->memory, nr_pages);
}

/* The tree has two levels: the root, and its children in the order of their numbers. */
struct cgroup_subsys_state *css_next_descendant_pre(struct cgroup_subsys_state *at,
						    struct cgroup_subsys_state *root)
{
	HOST_STUB("duplicated");
	if (!at)
		return root;
	if (root != groups[0].css || at->id == nr_groups)
		return NULL;
	return groups[at->id].css;
}

/* Iterate over the tasks of a group by walking the list of all tasks. */
void css_task_iter_start(struct cgroup_subsys_state *css, unsigned int flags,
			 struct css_task_iter *iter)
{
	HOST_STUB("custom");
	memset(iter, 0, sizeof(*iter));
	iter->cur_task = &init_task;
	iter->cur_cset = css == groups[0].css ? &init_css_set : &groups[css->id - 1].set;
}

struct task_struct *css_task_iter_next(struct css_task_iter *iter)
{
	HOST_STUB("custom");
	do
		iter->cur_task = next_task(iter->cur_task);
	while (iter->cur_task != &init_task && iter->cur_task->cgroups != iter->cur_cset);
	return iter->cur_task == &init_task ? NULL : iter->cur_task;
}

/* Flush children before the root, since a flush adds to the parent's counters. */
void sum_up_groups(void)
{
	int cpu;

	for (int i = nr_groups - 1; i >= 0; i--)
		for_each_possible_cpu(cpu)
			memory_cgrp_subsys.css_rstat_flush(groups[i].css, cpu);
}

#ifdef HAVE_CSS_RSTAT_FLUSH
void css_rstat_flush(struct cgroup_subsys_state *of)
#else
void cgroup_rstat_flush(struct cgroup *of)
#endif
{
	HOST_STUB("custom");
	sum_up_groups();
}
