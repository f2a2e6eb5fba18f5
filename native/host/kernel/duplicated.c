// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that mean the same as the kernel's own, for the small machine that
 * data.c describes. The originals would need large other parts of the kernel.
 */
#include <linux/nodemask.h>
#include <linux/numa.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/topology.h>
#include "kernel.h"

/* mm/mempolicy.c: the nearest node with this state. Weak, as mempolicy.o may be linked. */
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
 * kernel/rcu/tree_plugin.h: the task counts its nesting depth. No grace period
 * waits for a hosted task, so the outermost unlock has no special work. It only
 * loads rcu_read_unlock_special, as the kernel does.
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
