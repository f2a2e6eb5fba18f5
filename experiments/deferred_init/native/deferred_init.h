/* SPDX-License-Identifier: GPL-2.0-only */
/* The deferred-init experiment: what runner.c asks of glue.c. */
#ifndef REAM_DEFERRED_INIT_H
#define REAM_DEFERRED_INIT_H

#include "host.h"

#define DEFERRED_MOST_NODES 2
#define DEFERRED_NO_GROWTH (-1)

/**
 * struct deferred_range - one range as memblock has it
 * @kind: Four times the node's number; plus 1 if it is reserved memory, plus 2
 *	if the firmware says that it may go: then memblock keeps it apart from
 *	a neighbour that stays.
 * @start: First byte.
 * @end: Behind the last; neither has to be the beginning of a page.
 */
struct deferred_range {
	unsigned long kind;
	unsigned long start;
	unsigned long end;
};

/**
 * struct deferred_span - what one node spans
 * @start_pfn: Of the node and of its only zone.
 * @first_deferred_pfn: From here on no descriptor is initialised; section
 *	aligned.
 * @end_pfn: Behind the last frame.
 */
struct deferred_span {
	unsigned long start_pfn;
	unsigned long first_deferred_pfn;
	unsigned long end_pfn;
};

/**
 * struct deferred_request - one or two nodes, and where their map lies
 * @shares_cpus: Whether several of all these CPUs share a real one.
 * @node: By node.
 * @ranges: Of all nodes, each kind in ascending order.
 * @nr_ranges: How many.
 * @map: The descriptors of all frames from @map_pfn up to the end of the last
 *	section.
 * @usage: Room for the pageblock bits of those sections.
 * @ram: The contents of @map_pfn and of all frames behind it: free pages are
 *	to be zeroed, as with init_on_free=1. NULL = contents are left alone.
 */
struct deferred_request {
#define REQUEST PLAN_MEMBER
#define ROW(...)
#include "row.def"
	unsigned int shares_cpus;
	struct deferred_span node[DEFERRED_MOST_NODES];
	const struct deferred_range *ranges;
	unsigned long nr_ranges;
	void *map;
	void *usage;
	void *ram;
};

/**
 * struct deferred_zone - what a node's zone holds now, and where to look
 * @free_area: The zone's lists: @nr_orders areas, each with a list head for
 *	each type first.
 * @area_bytes: From one area to the next.
 * @nr_free_offset: Of the count within an area.
 * @nr_orders: Orders of blocks.
 * @nr_types: Types of pageblocks.
 * @lru_offset: Of the list pointers in a descriptor.
 * @order_offset: Of the block's order in the descriptor of a free block.
 * @managed_pages: The zone's counter.
 * @nr_free_pages: NR_FREE_PAGES, all CPUs' parts added.
 * @nr_free_of_all: NR_FREE_PAGES of all zones together, as the kernel adds it
 *	up beside the zones' own.
 * @counted_order: Blocks of this order or more are counted apart; 0 if none are.
 * @nr_free_in_blocks: Their pages, all CPUs' parts added.
 * @first_deferred_pfn: Of the node; all ones when nothing is deferred.
 */
struct deferred_zone {
	char *free_area;
	unsigned long area_bytes;
	unsigned long nr_free_offset;
	unsigned int nr_orders;
	unsigned int nr_types;
	unsigned long lru_offset;
	unsigned long order_offset;
	unsigned long managed_pages;
	long nr_free_pages;
	long nr_free_of_all;
	unsigned int counted_order;
	long nr_free_in_blocks;
	unsigned long first_deferred_pfn;
};

/**
 * struct deferred_ops - what one variant can do
 * @prepare: Make nodes, zones, sections and memblock; not timed.
 * @look_free: After @prepare, make descriptors that are not initialised yet
 *	look like free blocks: code that takes one for a buddy merges with it.
 * @grow: The kernel's deferred_grow_zone() of node 0, as an allocation of that
 *	order makes it. Returns what that returns.
 * @run: The kernel's deferred_init_memmap() of every node, and nothing else; of
 *	a boot all from free_area_init() on.
 * @read: Say what came of a node.
 * @left_alone: What they had to leave of a node as it was, up to an area of no
 *	type: the node and its zones, without what @read says. A boot leaves
 *	nothing.
 * @broken: A rule of the kernel's that was not kept, in words, or NULL.
 */
struct deferred_ops {
	void (*prepare)(const struct deferred_request *request);
	void (*look_free)(const struct deferred_request *request);
	int (*grow)(unsigned int order);
	void (*run)(void);
	void (*read)(unsigned int nid, struct deferred_zone *zone);
	const struct host_area *(*left_alone)(unsigned int nid);
	const char *(*broken)(void);
};

#endif
