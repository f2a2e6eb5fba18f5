/* SPDX-License-Identifier: GPL-2.0-only */
/* The fork experiment: what runner.c asks of glue.c. */
#ifndef REAM_FORK_H
#define REAM_FORK_H

#include "host.h"
#include "paging_place.h"

#define FORK_NR_COUNTERS 4	/* NR_MM_COUNTERS of 6.12, checked in glue.c */

/**
 * struct fork_request - a parent, perhaps its child, and one VMA of theirs
 * @parent: Page table entries to begin with.
 * @child: The child's; NULL if it has no page tables yet.
 */
struct fork_request {
#define REQUEST PLAN_MEMBER
#define ROW(...)
#include "row.def"
	const unsigned long *parent;
	const unsigned long *child;
};

/**
 * struct fork_result - what is not in descriptors
 * @parent: Room for every entry of the parent's.
 * @child: Likewise; zeroes where the child has no table.
 * @parent_rss: Counters.
 * @child_rss: Counters.
 * @nr_stray: Entries outside the VMA that are not empty, in either's tables.
 * @nr_lost_tables: Page tables of either that mm->pgtables_bytes does not have,
 *	or has and are not there; as bytes.
 * @write_protects: How far the parent's write_protect_seq went.
 * @on_mmlist: Whether the child is where swapoff looks for swap entries.
 * @left_pending: What the operation left of its own in tlb_flush_pending, and
 *	of others' in tlb_flush_batched.
 * @flush_start: Lowest address whose translation was flushed.
 * @flush_end: Behind the highest.
 * @exits_flush: Whether translations of pages of an address space that goes have
 *	to be flushed. Not on arm64: its ASID is used again only after all were.
 * @nr_flushes_of_vma: Flushes before the VMA's end, and not the gather's.
 * @nr_freed: Folios whose last reference went.
 * @nr_deferred: Calls of deferred_split_folio().
 * @nr_swap_duplicated: Calls of swap_duplicate(), in effect.
 * @nr_swap_freed: Swap entries given up.
 * @nr_marked_dirty: Calls of folio_mark_dirty().
 * @nr_accessed: Calls of folio_mark_accessed().
 * @error: What the operation returned.
 */
struct fork_result {
	unsigned long *parent;
	unsigned long *child;
	long parent_rss[FORK_NR_COUNTERS];
	long child_rss[FORK_NR_COUNTERS];
	unsigned long nr_stray;
	long nr_lost_tables;
	unsigned long write_protects;
	unsigned long on_mmlist;
	long left_pending;
	unsigned long flush_start;
	unsigned long flush_end;
	int exits_flush;
	unsigned long nr_flushes_of_vma;
	unsigned long nr_freed;
	unsigned long nr_deferred;
	unsigned long nr_swap_duplicated;
	unsigned long nr_swap_freed;
	unsigned long nr_marked_dirty;
	unsigned long nr_accessed;
	long error;
};

enum fork_operation {
	FORK_COPY,	/* copy_page_range() from parent to child */
	FORK_UNMAP,	/* the parent's, as munmap() does it */
	FORK_UNMAP_CHILD,
	FORK_EXIT,	/* the parent's, as exit_mmap() does it */
	FORK_EXIT_CHILD,
	FORK_DISCARD,	/* the parent's, as madvise(MADV_DONTNEED) does it */
	FORK_TRUNCATE,	/* what the parent has of a file that becomes shorter */
	FORK_NR_OPERATIONS
};

/**
 * struct fork_ops - what one variant can do
 * @prepare: Build both address spaces; not timed.
 * @run: The kernel's functions for one operation, and nothing else.
 * @read: Say what came of it.
 * @keeps_large_mapcount: Whether this kernel counts a large folio's mappings
 *	in one place; else that word stays as it was.
 */
struct fork_ops {
	void (*prepare)(const struct fork_request *request);
	void (*run)(enum fork_operation operation);
	void (*read)(struct fork_result *result);
	int (*keeps_large_mapcount)(void);
};

#endif
