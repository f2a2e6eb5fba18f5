/* SPDX-License-Identifier: GPL-2.0-only */
/* Unmapping down to the page allocator: what runner.c asks of glue.c. */
#ifndef REAM_FREEING_H
#define REAM_FREEING_H

#include "host.h"
#include "node_place.h"

/**
 * struct freeing_request - a node, and a process that has pages of it
 * @folios: Folios of the mapping by index, in the order in which they are
 *	allocated; @nr_mapped >> @order of them.
 */
struct freeing_request {
#define REQUEST PLAN_MEMBER
#define ROW(...)
#include "row.def"
	const unsigned int *folios;
};

/**
 * struct freeing_result - what came of it
 * @node: The node and the process.
 * @nr_freed: Pages that the kernel counts as freed.
 * @nr_flushes: TLB flushes.
 */
struct freeing_result {
	struct node_state node;
	long nr_freed;
	unsigned long nr_flushes;
};

/**
 * struct freeing_ops - what one variant can do
 * @layout: Fill it in.
 * @prepare: Make the node as a boot leaves it, and the process. Returns false
 *	if there are too few frames.
 * @read_entries: Copy the entries of all its pages.
 * @run: Unmap them, as munmap() or exit_mmap().
 * @read: Say what is so.
 */
struct freeing_ops {
	void (*layout)(struct node_layout *layout);
	int (*prepare)(const struct freeing_request *request);
	void (*read_entries)(unsigned long *ptes);
	void (*run)(void);
	void (*read)(struct freeing_result *result);
};

#endif
