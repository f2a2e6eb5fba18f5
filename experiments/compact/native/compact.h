/* SPDX-License-Identifier: GPL-2.0-only */
/* The compact experiment, hosted: what runner.c asks of glue.c. */
#ifndef REAM_COMPACT_H
#define REAM_COMPACT_H

#include "host.h"

/*
 * Where things lie, the same for every variant, since descriptors and page
 * table entries hold addresses and frame numbers. Frames from
 * COMPACT_TABLE_PFN on are page tables; those of the node come behind them.
 */
#define COMPACT_TABLE_PFN 0x1f8000UL
#define COMPACT_PFN 0x200000UL			/* the node's first; section aligned */
#define COMPACT_MAP_ADDRESS 0x200000000000UL	/* descriptor of COMPACT_TABLE_PFN */
#define COMPACT_RAM_ADDRESS 0x300000000000UL	/* contents of COMPACT_TABLE_PFN */
#define COMPACT_VMA_ADDRESS 0x10000000000UL	/* where the process maps its pages */

#define COMPACT_HUGE_ORDER 9
#define COMPACT_HUGE_PAGES (1UL << COMPACT_HUGE_ORDER)
/* The allocator looks for the buddy of any block: at the node's end it must be within. */
#define COMPACT_NODE_STEP 1024UL		/* MAX_ORDER_NR_PAGES; kernel_node.c checks it */

/* Counters of /proc/vmstat that compaction and the allocations move. */
enum compact_event {
#define EVENT(name) COMPACT_##name,
#include "events.def"
	COMPACT_NR_EVENTS
};

enum compact_list_kind { COMPACT_FREE, COMPACT_PCP, COMPACT_LRU };

/**
 * struct compact_list - one list that frames of the node may be on
 * @head: Its struct list_head.
 * @kind: Whose it is.
 * @order: Of what is on it; 0 for an LRU.
 * @group: Lists with the same one are counted together: of one order that is
 *	free, of one CPU, of the node's LRUs.
 */
struct compact_list {
	const void *head;
	enum compact_list_kind kind;
	unsigned int order;
	unsigned int group;
};

/**
 * struct compact_layout - how this kernel lays out what is looked at
 * @page_bytes: Of a descriptor; the others are offsets in it.
 * @links_mask: Bits of flags that say where a frame is, not how.
 * @lru, @dirty, @anon_exclusive, @mlocked, @unevictable, @locked: Single bits
 *	of flags.
 * @type_mask: Bits of page_type that say which it is.
 * @buddy_type: These, of the head of a free block.
 * @anon: Bit of mapping: it is an anon_vma.
 */
struct compact_layout {
	unsigned long page_bytes;
	unsigned long flags, links, mapping, index, private, mapcount, refcount;
	unsigned long links_mask;
	unsigned long lru, dirty, anon_exclusive, mlocked, unevictable, locked;
	unsigned int type_mask, buddy_type;
	unsigned long anon;
};

/**
 * struct compact_request - a node, what fills it, and what is asked of it
 * @freed: Pages that are given back, by index, in this order. Those beyond the
 *	pages that the process has, or in a group that is not whole, stay.
 * @nr_freed: How many.
 * @group: Pages of a group.
 * @huge: Room for the frames of the huge pages, @nr_huge of them.
 * @ballast: Room for those that were free before, one for each of the node.
 */
struct compact_request {
#define REQUEST PLAN_MEMBER
#define ROW(...)
#include "row.def"
	const unsigned int *freed;
	unsigned long nr_freed;
	unsigned long group;
	unsigned long *huge;
	unsigned long *ballast;
};

/**
 * struct compact_result - what came of it
 * @nr_mapped: Pages that the process had before it gave some back.
 * @nr_ballast: Huge pages that were free before the clock.
 * @nr_allocated: Those that were allocated within it.
 * @nr_failed: Requests that failed.
 * @longest_ns: The longest of all requests.
 * @events: Growth of the counters within the clock.
 * @managed: Frames of the node that the allocator has.
 * @nr_free: Its number of free ones, those on per-CPU lists apart.
 * @nr_lru: What the zone counts on LRU lists, all of them.
 * @nr_isolated: What the node counts as isolated, anonymous and file.
 * @nr_anon: What it counts as mapped.
 * @rss: What the process counts.
 * @anon_vma_refs: References to the anon_vma; 1 is the VMA's own.
 * @nr_offloaded: Folios that an engine copied.
 * @nr_flushes: TLB flushes within the clock, of batches and of single entries.
 * @lists: All lists that a frame may be on.
 * @nr_lists: How many.
 * @free_area_nr: By order, how many blocks the zone counts.
 * @pcp_count: By CPU, how many frames its lists are said to hold.
 * @nr_orders: Of free blocks.
 * @anon_vma: Its address.
 * @pgoff: Index of the process's first page.
 */
struct compact_result {
	unsigned long nr_mapped, nr_ballast, nr_allocated, nr_failed;
	unsigned long longest_ns;
	long events[COMPACT_NR_EVENTS];
	long managed, nr_free, nr_lru, nr_isolated[2], nr_anon, rss;
	long anon_vma_refs;
	unsigned long nr_offloaded;
	unsigned long nr_flushes;
	const struct compact_list *lists;
	unsigned long nr_lists;
	const unsigned long *free_area_nr;
	const long *pcp_count;
	unsigned int nr_orders;
	unsigned long anon_vma, pgoff;
};

/**
 * struct compact_ops - what one variant can do
 * @layout: Fill it in.
 * @prepare: Make the node as a boot leaves it, have a process take nearly all
 *	of it and give some back, and take the huge pages that are free then.
 *	Returns how many pages the process had.
 * @read_entries: Copy the entries of all its pages.
 * @run: Ask for huge pages, through the allocator's slow path.
 * @read: Say what came of it. LRU batches are drained before.
 * @is_movable: Whether a frame's pageblock still is of the movable type.
 */
struct compact_ops {
	void (*layout)(struct compact_layout *layout);
	unsigned long (*prepare)(const struct compact_request *request);
	void (*read_entries)(unsigned long *ptes);
	void (*run)(void);
	void (*read)(struct compact_result *result);
	int (*is_movable)(unsigned long pfn);
};

#endif
