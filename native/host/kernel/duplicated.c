// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions with the meaning of the kernel's own, for the little machine that
 * data.c describes; the originals need more of the kernel than they are worth.
 */
#include <linux/nodemask.h>
#include <linux/numa.h>
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
