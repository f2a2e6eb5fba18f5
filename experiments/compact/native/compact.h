/* SPDX-License-Identifier: GPL-2.0-only */
/* The compact experiment, hosted: what runner.c asks of glue.c. */
#ifndef REAM_COMPACT_H
#define REAM_COMPACT_H

#include "host.h"
#include "node_place.h"

#define COMPACT_HUGE_ORDER 9
#define COMPACT_HUGE_PAGES (1UL << COMPACT_HUGE_ORDER)

/* Counters of /proc/vmstat that compaction and the allocations move. */
enum compact_event {
#define EVENT(name) COMPACT_##name,
#include "events.def"
	COMPACT_NR_EVENTS
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
 * @nr_offloaded: Folios that an engine copied.
 * @nr_flushes: TLB flushes within the clock, of batches and of single entries.
 * @nr_looks: Number of looks for free frames; 0 if none was requested.
 * @nr_parked: The most frames that were free and in no list then.
 * @high_wmark: The zone's high watermark.
 * @pcp_high_min: So many pages on a CPU's lists are flushed while the zone is
 *	flagged as below it.
 * @is_below_high: It was after the clock: ZONE_BELOW_HIGH.
 * @node: The node and the process.
 */
struct compact_result {
	unsigned long nr_mapped, nr_ballast, nr_allocated, nr_failed;
	unsigned long longest_ns;
	long events[COMPACT_NR_EVENTS];
	unsigned long nr_offloaded;
	unsigned long nr_flushes;
	unsigned long nr_looks, nr_parked;
	unsigned long high_wmark, pcp_high_min;
	bool is_below_high;
	struct node_state node;
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
	void (*layout)(struct node_layout *layout);
	unsigned long (*prepare)(const struct compact_request *request);
	void (*read_entries)(unsigned long *ptes);
	void (*run)(void);
	void (*read)(struct compact_result *result);
	int (*is_movable)(unsigned long pfn);
};

#endif
