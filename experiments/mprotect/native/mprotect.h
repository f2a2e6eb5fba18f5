/* SPDX-License-Identifier: GPL-2.0-only */
/* The mprotect experiment: what runner.c asks of glue.c. */
#ifndef REAM_MPROTECT_H
#define REAM_MPROTECT_H

#include "host.h"
#include "tlb_flushes.h"

/**
 * struct mprotect_request - an address space with one VMA, and what is changed
 * @entries: Page table entries to begin with.
 */
struct mprotect_request {
#define REQUEST PLAN_MEMBER
#define ROW(...)
#include "row.def"
	const unsigned long *entries;
};

/**
 * struct mprotect_result - what came of it
 * @entries: Room for every entry of the VMA.
 * @nr_stray: Entries outside the VMA that are not empty, in its tables.
 * @nr_lost_tables: Page tables that mm->pgtables_bytes does not have, or has
 *	and are not there; as bytes.
 * @left_pending: What the calls left of their own in tlb_flush_pending, and of
 *	others' in tlb_flush_batched.
 * @nr_pages: What all calls returned, added up.
 * @flushes: What was flushed from TLBs.
 */
struct mprotect_result {
	unsigned long *entries;
	unsigned long nr_stray;
	long nr_lost_tables;
	long left_pending;
	long nr_pages;
	struct tlb_flushes flushes;
};

/**
 * struct mprotect_ops - what one variant can do
 * @prepare: Build the address space; not timed.
 * @run: The kernel's change_protection(), and the gather around it.
 * @read: Say what came of it.
 * @table: First entry of the page table that has a slot's entry.
 */
struct mprotect_ops {
	void (*prepare)(const struct mprotect_request *request);
	void (*run)(void);
	void (*read)(struct mprotect_result *result);
	unsigned long *(*table)(unsigned long slot);
};

#endif
