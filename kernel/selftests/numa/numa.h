/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of libnuma that the kernel's migration test calls, for machines that
 * have not its headers: without them no test would be compiled.
 */
#ifndef REAM_NUMA_H
#define REAM_NUMA_H

struct bitmask {
	unsigned long nodes;	/* with memory; the first 64 */
};

extern struct bitmask *numa_all_nodes_ptr;

int numa_available(void);
int numa_num_task_cpus(void);
int numa_max_possible_node(void);
int numa_bitmask_isbitset(const struct bitmask *mask, unsigned int node);

#endif
