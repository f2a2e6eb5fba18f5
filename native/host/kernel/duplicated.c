// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions with the meaning of the kernel's own, for the little machine that
 * data.c describes; the originals need more of the kernel than they are worth.
 */
#include <linux/nodemask.h>
#include <linux/numa.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/topology.h>
#include "kernel.h"

/* mm/mempolicy.c: the node itself if it has the state, else the nearest. Weak: or that one's. */
int __weak numa_nearest_node(int node, unsigned int state)
{
	HOST_STUB("duplicated");
	if (state >= NR_NODE_STATES)
		return -EINVAL;
	if (node == NUMA_NO_NODE || node_state(node, state))
		return node;
	return first_node(node_states[state]);
}

#ifdef CONFIG_PREEMPT_RCU
/*
 * kernel/rcu/tree_plugin.h: the task counts how deep it is. No grace period
 * waits for a hosted task, so nothing special is left to do at the outermost
 * unlock; the kernel looks for that in one more load.
 */
void __rcu_read_lock(void)
{
	HOST_STUB("duplicated");
	WRITE_ONCE(current->rcu_read_lock_nesting, current->rcu_read_lock_nesting + 1);
	barrier();
}

void __rcu_read_unlock(void)
{
	HOST_STUB("duplicated");
	barrier();
	WRITE_ONCE(current->rcu_read_lock_nesting, current->rcu_read_lock_nesting - 1);
	barrier();
	WARN_ON_ONCE(!current->rcu_read_lock_nesting &&
		     READ_ONCE(current->rcu_read_unlock_special.s));
}
#endif
