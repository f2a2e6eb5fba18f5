/* SPDX-License-Identifier: GPL-2.0-only */
/* The mremap experiment: what runner.c asks of glue.c. */
#ifndef REAM_MREMAP_H
#define REAM_MREMAP_H

#include "host.h"
#include "tlb_flushes.h"

/**
 * struct mremap_request - an address space with two VMAs, and what is moved
 * @entries: Page table entries to begin with, of both and what is between.
 */
struct mremap_request {
#define REQUEST PLAN_MEMBER
#define ROW(...)
#include "row.def"
	const unsigned long *entries;
};

/**
 * struct mremap_result - what came of it
 * @entries: Room for every entry.
 * @nr_stray: Other entries of the same tables that are not empty.
 * @nr_lost_tables: Page tables that mm->pgtables_bytes does not have, or has
 *	and are not there; as bytes.
 * @left_batched: What reclaim has left to flush, if it was not flushed.
 * @nr_bytes: What all calls returned, added up.
 * @flushes: What was flushed from TLBs.
 */
struct mremap_result {
	unsigned long *entries;
	unsigned long nr_stray;
	long nr_lost_tables;
	long left_batched;
	unsigned long nr_bytes;
	struct tlb_flushes flushes;
};

/**
 * struct mremap_ops - what one variant can do
 * @prepare: Build the address space; not timed.
 * @run: The kernel's move_page_tables().
 * @read: Say what came of it.
 */
struct mremap_ops {
	void (*prepare)(const struct mremap_request *request);
	void (*run)(void);
	void (*read)(struct mremap_result *result);
};

#endif
