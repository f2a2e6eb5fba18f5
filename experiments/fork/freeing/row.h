/* SPDX-License-Identifier: GPL-2.0-only */
/* A row whose pages go back to the allocator, as the runner's files have it. */
#ifndef REAM_FREEING_ROW_H
#define REAM_FREEING_ROW_H

#include "freeing.h"
#include "frames.h"
#include "launch.h"

#define PAGE_BYTES 4096UL

/**
 * struct row - what its line says, and what is known of it
 * @folios: In the order in which they are allocated.
 * @frames: Of the node, and what has each.
 * @owner_before: By frame, what had it.
 * @before: Entries before the clock. @after: And after it.
 * @result: What the variant says.
 * @digest: By variant, of which frame became what; 0 = it is not known.
 */
struct row {
#define ROW PLAN_MEMBER
#define REQUEST(...)
#include "row.def"
	struct freeing_request request;
	unsigned int *folios;
	struct frames frames;
	unsigned char *owner_before;
	unsigned long *before, *after;
	struct freeing_result result;
	uint64_t digest[MOST_VARIANTS];
};

/* verify.c: whose each frame is before the clock; whether all is as it must be after it. */
bool verify_before(struct row *row, unsigned int variant);
bool verify_after(struct row *row, unsigned int variant);

#endif
