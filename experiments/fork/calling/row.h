/* SPDX-License-Identifier: GPL-2.0-only */
/* A fork as a call, as the runner's files have it. */
#ifndef REAM_CALLING_ROW_H
#define REAM_CALLING_ROW_H

#include "calling.h"
#include "frames.h"
#include "launch.h"

#define PAGE_BYTES 4096UL

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
};

/* verify.c: the parent before anything was done. */
bool verify_before(struct row *row, unsigned int variant);

/* Both after the fork, or after faults behind it. */
bool verify_forked(struct row *row, unsigned int variant, bool faulted);

/* The parent after the child has gone; @faulted: and wrote to its pages before. */
bool verify_alone(struct row *row, unsigned int variant, bool faulted);

#endif
