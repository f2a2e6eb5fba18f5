/* SPDX-License-Identifier: GPL-2.0-only */
/* What pages hold whose contents matter: every byte says whose it is. */
#ifndef REAM_CONTENTS_H
#define REAM_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES 4096UL

#define CONTENTS_ANY (-1)	/* of a frame that may hold anything */
#define CONTENTS_FINE SIZE_MAX

/**
 * contents_fill() - give frames what pages hold
 * @start: The first frame.
 * @pages: For each, which page it is, or CONTENTS_ANY: it stays as it is. NULL:
 *	they are pages 0, 1, ...
 * @nr_pages: How many.
 * @nr_threads: CPUs to write with.
 */
void contents_fill(unsigned char *start, const int64_t *pages, size_t nr_pages,
		   unsigned int nr_threads);

/* Give each what no page holds, past the caches. */
void contents_spoil(unsigned char *start, size_t nr_pages, unsigned int nr_threads);

/* Whether a frame is as contents_spoil() left it. */
bool contents_is_spoilt(const unsigned char *frame);

/**
 * contents_first_wrong() - look for a frame that holds what it must not
 * @start: The first frame.
 * @pages: For each, the page whose contents it must hold, or CONTENTS_ANY.
 * @nr_pages: How many.
 * @nr_threads: CPUs to compare with.
 *
 * Return: the least number of such a frame, or CONTENTS_FINE.
 */
size_t contents_first_wrong(const unsigned char *start, const int64_t *pages,
			    size_t nr_pages, unsigned int nr_threads);

/* The first byte at which a frame differs from a page's contents. */
size_t contents_first_byte(const unsigned char *frame, int64_t page);

#endif
