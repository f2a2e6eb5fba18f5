/* SPDX-License-Identifier: GPL-2.0-only */
/* The migrate experiment: what runner.c asks of glue.c. */
#ifndef REAM_MIGRATE_H
#define REAM_MIGRATE_H

#include "host.h"
#include "offload.h"

/*
 * Where things lie, the same for every variant, since descriptors and page
 * table entries hold addresses and frame numbers. Frames from
 * MIGRATE_TABLE_PFN on are page tables; the others are what is migrated, and
 * where to: those of node 0, and those of node 1.
 */
#define MIGRATE_TABLE_PFN 0x100000UL
#define MIGRATE_SRC_PFN 0x200000UL
#define MIGRATE_DST_PFN 0x2000000UL
#define MIGRATE_MAP_ADDRESS 0x200000000000UL	/* descriptor of MIGRATE_TABLE_PFN */
#define MIGRATE_RAM_ADDRESS 0x300000000000UL	/* contents of MIGRATE_TABLE_PFN */
#define MIGRATE_ANON_VMA_ADDRESS 0x1fff00000000UL
#define MIGRATE_NODE_ADDRESS 0x1fff00100000UL	/* struct pglist_data of node 0 */
#define MIGRATE_NODE_BYTES 0x100000UL		/* from there to the next node's */
#define MIGRATE_LIST_ADDRESS 0x1fff01000000UL	/* the callers' list heads */
#define MIGRATE_MOST_LISTS 0x100000UL
#define MIGRATE_LIST_BYTES 16UL			/* of a head; glue.c checks it */
#define MIGRATE_VMA_ADDRESS 0x10000000000UL	/* where each mm maps the folios */

#define MIGRATE_NR_NODES 2
#define MIGRATE_MOST_MAPPINGS 2
#define MIGRATE_NR_ORDERS 10

enum migrate_event {
	MIGRATE_EVENT_SUCCESS,		/* PGMIGRATE_SUCCESS */
	MIGRATE_EVENT_FAIL,		/* PGMIGRATE_FAIL */
	MIGRATE_EVENT_THP_SUCCESS,	/* THP_MIGRATION_SUCCESS */
	MIGRATE_EVENT_THP_FAIL,		/* THP_MIGRATION_FAIL */
	MIGRATE_EVENT_THP_SPLIT,	/* THP_MIGRATION_SPLIT */
	MIGRATE_NR_EVENTS
};

enum migrate_stat {
	MIGRATE_STAT_ISOLATED_ANON,	/* NR_ISOLATED_ANON */
	MIGRATE_STAT_ISOLATED_FILE,	/* NR_ISOLATED_FILE */
	MIGRATE_STAT_ANON_MAPPED,	/* NR_ANON_MAPPED */
	MIGRATE_STAT_ANON_THPS,		/* NR_ANON_THPS */
	MIGRATE_NR_STATS
};

/**
 * struct migrate_mapping - what one address space has
 * @ptes: Entries, one for each base page of the VMA.
 * @pmds: One for each 2 MiB of it: an entry that maps all of them, or 0: a
 *	table with the entries in @ptes.
 */
struct migrate_mapping {
	unsigned long *ptes;
	unsigned long *pmds;
};

/**
 * struct migrate_list - what one call of migrate_pages() is given
 * @first: Page number of the first folio's head; links are in descriptors.
 * @last: Of the last one's.
 */
struct migrate_list {
	unsigned long first;
	unsigned long last;
};

/**
 * struct migrate_request - folios, their mappings, and their targets
 * @mapping: What each address space has to begin with.
 * @lists: What each call is given, one call after the other.
 * @nr_lists: Calls, most MIGRATE_MOST_LISTS.
 * @no_target: Page numbers of heads for which there is no new folio,
 *	ascending.
 * @nr_no_target: How many.
 * @no_large_target: Likewise, as long as the folio is a large one.
 * @nr_no_large_target: How many.
 * @queued: Of heads on the first node's queue of deferred splits, in its order.
 * @nr_queued: How many.
 * @poisoned: Page numbers that a CPU cannot read, ascending.
 * @nr_poisoned: How many.
 * @flush_ticks: How long a flush of other CPUs' TLBs takes, by the CPU's
 *	time stamp counter; 0: no time at all.
 * @shares_cpus: There are more CPUs than real ones.
 */
struct migrate_request {
#define REQUEST PLAN_MEMBER
#define ROW(...)
#include "row.def"
	struct migrate_mapping mapping[MIGRATE_MOST_MAPPINGS];
	const struct migrate_list *lists;
	unsigned long nr_lists;
	const unsigned long *no_target;
	unsigned long nr_no_target;
	const unsigned long *no_large_target;
	unsigned long nr_no_large_target;
	const unsigned long *queued;
	unsigned long nr_queued;
	const unsigned long *poisoned;
	unsigned long nr_poisoned;
	unsigned long flush_ticks;
	unsigned int shares_cpus;
};

/**
 * struct migrate_result - what is not in descriptors and contents
 * @ret: What migrate_pages() returned; of several calls, the sum, or the first
 *	that is negative.
 * @nr_succeeded: What it said of base pages moved, in all calls.
 * @events: Additions to the counters of enum migrate_event.
 * @stats: Additions to the statistics of enum migrate_stat, by node.
 * @rss: Pages that each address space counts; others of its counters must be 0.
 * @nr_asked: Calls of get_new_folio().
 * @nr_put: Calls of put_new_folio().
 * @nr_freed: Folios whose last reference went.
 * @nr_added: Calls of folio_add_lru().
 * @nr_drained: Calls of lru_add_drain().
 * @nr_failed_reads: Calls of memory_failure_queue().
 * @nr_batch_flushes: Calls of arch_tlbbatch_flush().
 * @nr_single_flushes: Calls of flush_tlb_mm_range().
 * @nr_early_reads: Pages that were read to be copied before the flush of their entries.
 * @noted: Of each address space, whether it knows that a flush was put off.
 * @nr_anon: By order, additions to the number of large anonymous folios.
 * @mapping: Room for every entry.
 * @anon_vma_refs: References to the anon_vma; 1 is the VMAs' own.
 * @nr_offloaded: Folios that a provider says it has copied.
 * @nr_dma_mapped: What is still mapped for an engine, where pages are watched.
 */
struct migrate_result {
	long ret;
	unsigned long nr_succeeded;
	long events[MIGRATE_NR_EVENTS];
	long stats[MIGRATE_NR_STATS][MIGRATE_NR_NODES];
	long rss[MIGRATE_MOST_MAPPINGS];
	long nr_asked;
	long nr_put;
	long nr_freed;
	long nr_added;
	long nr_drained;
	long nr_failed_reads;
	long nr_batch_flushes;
	long nr_single_flushes;
	long nr_early_reads;
	long noted[MIGRATE_MOST_MAPPINGS];
	long nr_anon[MIGRATE_NR_ORDERS];
	struct migrate_mapping mapping[MIGRATE_MOST_MAPPINGS];
	long anon_vma_refs;
	unsigned long nr_offloaded;
	long nr_dma_mapped;
};

/**
 * struct migrate_ops - what one variant can do
 * @prepare: Build address spaces; descriptors of folios and targets are in
 *	place. Not timed. Returns the engine that will copy.
 * @run: The kernel's migrate_pages(), once for each list, and nothing else.
 * @read: Report the result.
 */
struct migrate_ops {
	enum offload_engine (*prepare)(const struct migrate_request *request);
	void (*run)(void);
	void (*read)(struct migrate_result *result);
};

#endif
