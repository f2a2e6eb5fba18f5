/* SPDX-License-Identifier: GPL-2.0-only */
/* A row of the compact experiment, as the runner's files have it. */
#ifndef REAM_COMPACT_ROW_H
#define REAM_COMPACT_ROW_H

#include "contents.h"
#include "frames.h"
#include "launch.h"
#include "compact.h"

enum hole_kind { HOLES_SCATTERED, HOLES_EVEN, HOLES_ODD };
enum order { ORDER_DOWN, ORDER_UP, ORDER_RANDOM };

/**
 * struct outcome - what has to be the same whenever a variant does the same again
 * @is_known: There was one before.
 * @digest: Of which page is in which frame, which frames are huge pages', and what is free.
 * @events: As counted.
 * @nr_allocated: Huge pages.
 */
struct outcome {
	bool is_known;
	uint64_t digest;
	long events[COMPACT_NR_EVENTS];
	unsigned long nr_allocated;
};

/**
 * struct row - one node, compacted: what its line says, and what is known of it
 * @frames: Of the node, and what has each.
 * @result: What the variant says.
 * @is_gone: By page, whether it is given back.
 * @freed: Those, in their order.
 * @before: Entries before the clock. @after: And after it.
 * @was: Descriptors before the clock.
 * @pages: By frame, the page in it, or CONTENTS_ANY.
 * @huge: Frames of huge pages. @ballast: Of those that were free before.
 * @heads: Pages that have to move for the first of the huge pages, by index; for plain copies.
 * @nr_heads: How many; 0: the node is too small for copies of all of them.
 * @outcome: By variant.
 */
struct row {
#define ROW PLAN_MEMBER
#define REQUEST(...)
#include "row.def"
	struct compact_request request;
	struct frames frames;
	struct compact_result result;
	bool *is_gone;
	unsigned int *freed;
	unsigned long *before, *after;
	unsigned char *was;
	int64_t *pages;
	unsigned long *huge, *ballast;
	unsigned long *heads;
	unsigned long nr_heads;
	struct outcome outcome[MOST_VARIANTS];
};

/* holes.c: which pages are given back, and in which order; pages are drawn from @seed. */
void holes_draw(struct row *row, uint64_t seed);

/* verify.c: whether all is as it must be; if not, the first fault has been said. */
bool verify_all(struct row *row, unsigned int variant);

/* By page, which frames have what; from the entries in @ptes. */
bool verify_entries(struct row *row, unsigned int variant, const unsigned long *ptes);

#endif
