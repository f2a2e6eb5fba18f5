/* SPDX-License-Identifier: GPL-2.0-only */
/* A fork as a call, as the runner's files have it. */
#ifndef REAM_CALLING_ROW_H
#define REAM_CALLING_ROW_H

#include "calling.h"
#include "frames.h"
#include "launch.h"

#define PAGE_BYTES 4096UL

enum pre_state_of_node {
	PRE_WARM,	/* just used, and made; nothing was moved out of the caches */
	PRE_COLD,	/* no line of a frame in use or its descriptor in any cache */
};

/**
 * struct limit - what a plain loop reads and writes
 * @entries: Of the pages that the operation is about; @nr of them.
 * @copies: The child's, or those of the new pages.
 * @vmas: The parent's, and behind as many the child's.
 */
struct limit {
	unsigned long *entries, *copies, nr;
	unsigned char *vmas;
};

/**
 * struct row - what its line says, and what is known of it
 * @frames: Of the node, and what has each.
 * @before: The parent as faults left it. @parent, @forked: both of them now.
 * @nr_kernel: Frames that the kernel had for itself before the fork.
 * @result: What the variant says. @result_before: And said before the fork.
 */
struct row {
#define ROW PLAN_MEMBER
#define REQUEST(...)
#include "row.def"
	struct calling_request request;
	struct frames frames;
	struct calling_space before, parent_is, child_is;
	long nr_kernel;
	struct calling_result result, result_before;
	struct limit limit;
};

/* Bring memory that the operation will read or write into the row's pre-state. */
static inline void set_caches(const struct row *row, void *start, size_t bytes)
{
	if (row->pre_state == PRE_COLD)
		cache_evict(start, bytes);
	else
		cache_touch(start, bytes);
}

/* verify.c: the parent before anything was done. */
bool verify_before(struct row *row, unsigned int variant);

/* Both after the fork, or after faults behind it. */
bool verify_forked(struct row *row, unsigned int variant, bool faulted);

/* The parent after the child has gone; @faulted: and wrote to its pages before. */
bool verify_alone(struct row *row, unsigned int variant, bool faulted);

#endif
