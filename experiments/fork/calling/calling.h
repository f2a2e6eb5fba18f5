/* SPDX-License-Identifier: GPL-2.0-only */
/* A fork as a call: what runner.c asks of glue.c. */
#ifndef REAM_CALLING_H
#define REAM_CALLING_H

#include "host.h"
#include "node_place.h"

/* What a plan says of each VMA of the parent, a word each. */
enum asked_word {
	ASKED_START, ASKED_END, ASKED_FLAGS, ASKED_FILE, ASKED_PGOFF,
	ASKED_NR_ANON,	/* its first pages are anonymous, so many */
	ASKED_COPIED,	/* whether the child has these, too */
	ASKED_WORDS
};

/* What is read of each VMA of either, and what a plan expects. */
enum vma_word {
	VMA_START, VMA_END, VMA_FLAGS, VMA_FILE, VMA_PGOFF,
	VMA_NR_CHAINS,	/* anon_vmas that its pages may have */
	VMA_OWN_ANON,	/* whether its next page has an anon_vma of this process alone */
	VMA_REACHED,	/* by the rmap of its first anonymous page in the parent */
	VMA_WORDS
};

/* Of an mm, in this order. */
#define CALLING_NR_RSS 4	/* NR_MM_COUNTERS; glue.c checks it */
enum space_counter {
	SPACE_MAP_COUNT, SPACE_TOTAL_VM, SPACE_DATA_VM, SPACE_EXEC_VM, SPACE_STACK_VM,
	SPACE_LOCKED_VM, SPACE_RSS, SPACE_USERS = SPACE_RSS + CALLING_NR_RSS,
	SPACE_COUNTERS
};

#define CALLING_MOST_CACHES 256

enum calling_operation {
	CALLING_FORK,	/* copy_mm() of the parent */
	CALLING_FAULTS,	/* the parent writes to each anonymous page that it may write */
	CALLING_EXIT,	/* mmput() of the child */
	CALLING_NR_OPERATIONS
};

/**
 * struct calling_request - a node, and a process of it
 * @vmas: Of the parent, in order of their addresses; ASKED_WORDS of each.
 * @nr_vmas: How many.
 */
struct calling_request {
#define REQUEST PLAN_MEMBER
#define ROW(...)
#include "row.def"
	const unsigned long *vmas;
	unsigned long nr_vmas;
};

/**
 * struct calling_space - what an address space is
 * @vmas: Room for VMA_WORDS of @most VMAs.
 * @entries: Room for the entries of all anonymous pages, in the order of the
 *	request; 0 where there is no table.
 * @most: Of VMAs that there is room for.
 * @nr_vmas: How many there are; 0 without the address space.
 * @nr_entries: All entries in its tables that are not empty.
 * @counters: enum space_counter.
 */
struct calling_space {
	unsigned long *vmas, *entries;
	unsigned long most, nr_vmas, nr_entries;
	long counters[SPACE_COUNTERS];
};

/**
 * struct calling_cache - objects of one kmem_cache that are in use
 * @cache: The kmem_cache.
 * @name: Its name.
 * @nr: Number of objects in use.
 */
struct calling_cache {
	const void *cache;
	const char *name;
	long nr;
};

/**
 * struct calling_result - what came of it
 * @node: Of the node.
 * @caches: Objects by cache; @nr_caches of them.
 * @nr_own_frames: Frames of slabs whose objects are the allocator's own (its
 *	sheaves): these come and go, and are not counted.
 * @committed: Pages promised to processes.
 * @file_vmas: VMAs of files, as these know them; and @file_refs, references.
 * @nr_flushes: TLB flushes of the operation.
 * @nr_waiting: Objects that waited for a grace period.
 * @error: Of copy_mm(), or of a fault.
 */
struct calling_result {
	struct node_state node;
	struct calling_cache caches[CALLING_MOST_CACHES];
	unsigned long nr_caches, nr_own_frames;
	long committed, file_vmas, file_refs;
	unsigned long nr_flushes, nr_waiting;
	long error;
};

/**
 * struct calling_ops - what one variant can do
 * @layout: Fill it in.
 * @prepare: Make the node as a boot leaves it, caches, and the parent with all
 *	its pages; and what comes before the operation. Returns false if there
 *	are too few frames.
 * @run: The operation.
 * @settle: Let grace periods end, and free slabs without objects.
 * @read_space: Say what the parent is, or the child.
 * @read: Say what else is so.
 */
struct calling_ops {
	void (*layout)(struct node_layout *layout);
	int (*prepare)(const struct calling_request *request);
	int (*fork)(void);
	void (*run)(enum calling_operation operation);
	void (*settle)(void);
	void (*read_space)(struct calling_space *space, int child);
	void (*read)(struct calling_result *result);
};

#endif
