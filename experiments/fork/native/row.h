/* SPDX-License-Identifier: GPL-2.0-only */
/* A row of the fork experiment, and its memory, as the runner's files have them. */
#ifndef REAM_FORK_ROW_H
#define REAM_FORK_ROW_H

#include "fork.h"
#include "launch.h"

#define DESCRIPTOR_BYTES 64UL	/* sizeof(struct page); the oracle checks it */
#define PAGE_BYTES 4096UL
#define NR_COUNTS 7

/**
 * struct row - one operation on one mapping
 * @name: As the record spells it.
 * @rounds: How often everything is measured.
 * @limits: Whether every entry maps a page, so that a plain loop can do it.
 * @operation: enum fork_operation.
 * @pre_state: What the caches hold before each sample: enum pre_state.
 * @request: Both address spaces; the arrays are filled in later.
 * @write_protects: How far the parent's write_protect_seq has to go.
 * @mixed: Whether the VMA has frames without a mapcount, whose translations
 *	must be gone with their entries.
 * @nr_pages: Descriptors from FORK_DATA_PFN on.
 * @parent_rss: Counters to begin with.
 * @child_rss: Likewise.
 * @parent_rss_after: What they must be.
 * @child_rss_after: Likewise.
 * @counts: What struct fork_result must say, nr_freed to error.
 * @parent: Entries to begin with; @child may be absent.
 * @parent_after: What they must be; @child_after may be absent: empty.
 * @pages: Descriptors to begin with.
 * @pages_after: What they must be.
 * @child_single: Instead of @child_after, for a kernel that takes entries one
 *	by one where others take batches; may be absent: the same.
 * @counts_single: Likewise, instead of @counts.
 * @seconds: Which of them are the second of a large folio; may be absent.
 * @copies: Pairs of frames, source and copy, whose contents must be equal;
 *	may be absent.
 */
struct row {
	char name[64];
	unsigned int rounds;
	unsigned int limits;
	unsigned int operation;
	unsigned int pre_state;
	struct fork_request request;
	unsigned long write_protects;
	unsigned int mixed;
	unsigned long nr_pages;
	long parent_rss[FORK_NR_COUNTERS];
	long child_rss[FORK_NR_COUNTERS];
	long parent_rss_after[FORK_NR_COUNTERS];
	long child_rss_after[FORK_NR_COUNTERS];
	long counts[NR_COUNTS];
	long counts_single[NR_COUNTS];
	char parent[64];
	char child[64];
	char parent_after[64];
	char child_after[64];
	char child_single[64];
	char pages[64];
	char pages_after[64];
	char seconds[64];
	char copies[64];
};

/**
 * struct files - the row's files, mapped while it runs
 * @parent_is: Room for the parent's entries as read back.
 * @child_is: Likewise, for the child's.
 */
struct files {
	struct image parent, child, parent_after, child_after, child_single;
	struct image pages, pages_after, seconds, copies;
	unsigned long *parent_is;
	unsigned long *child_is;
};

extern struct files now;

/* The descriptor of a frame, and what the frame holds. */
unsigned char *descriptor(unsigned long pfn);
unsigned char *contents(unsigned long pfn);

/* Whether memory is what the oracle says; what is not has been said. */
bool expect_verify(const struct row *row, unsigned int variant);

#endif
