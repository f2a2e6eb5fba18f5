/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory with holes of a page, and what its other pages hold. */
#ifndef REAM_HOLES_H
#define REAM_HOLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES 4096UL
#define BLOCK_BYTES (2UL << 20)
#define BLOCK_PAGES (BLOCK_BYTES / PAGE_BYTES)
#define PAGE_WORDS (PAGE_BYTES / sizeof(uint64_t))

struct holes {
	uint64_t *at;		/* begins with a block */
	size_t nr_pages;	/* with the holes; whole blocks */
	unsigned long hole_every;	/* of how many pages one is a hole */
	bool few_used;		/* the other way round: one of so many is none */
	bool scattered;		/* any of them, by the seed; else the last */
	uint64_t seed;		/* of what the others hold */
};

struct holes_finding {
	size_t nr_words;	/* that are not as they were written */
	size_t page, word;	/* of the first */
};

/* Address space for that many bytes of memory, or exit; aligned to a block. */
void *holes_map(size_t nr_bytes);

bool holes_is_hole(const struct holes *holes, size_t page);

/* Pages of it that are no holes. */
size_t holes_nr_resident(const struct holes *holes);

/* Write each word of the pages from @page up to @end that stay. */
void holes_write(const struct holes *holes, size_t page, size_t end);

/* Give the holes between them back; exits if the kernel takes one not. */
void holes_punch(const struct holes *holes, size_t page, size_t end);

/* Both. */
void holes_make(const struct holes *holes, size_t page, size_t end);

/* Compare each word of every page that stays. */
struct holes_finding holes_verify(const struct holes *holes);

#endif
