/* SPDX-License-Identifier: GPL-2.0-only */
/* Contents of test pages: each word identifies its page and its place in it. */
#ifndef REAM_CONTENTS_H
#define REAM_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES 4096UL

#define CONTENTS_ANY (-1)	/* for a frame that may hold anything */
#define CONTENTS_FINE SIZE_MAX

/**
 * contents_fill() - fill frames with the contents of pages
 * @start: The first frame.
 * @pages: Number of the page for each frame. CONTENTS_ANY leaves the frame
 *	unchanged. NULL stands for pages 0, 1, ...
 * @nr_pages: Number of frames.
 * @nr_threads: Number of CPUs to write with.
 */
void contents_fill(unsigned char *start, const int64_t *pages, size_t nr_pages,
		   unsigned int nr_threads);

/* Fill each frame with what no page holds, by non-temporal stores. */
void contents_spoil(unsigned char *start, size_t nr_pages, unsigned int nr_threads);

/* Whether a frame is as contents_spoil() left it. */
bool contents_is_spoilt(const unsigned char *frame);

/**
 * contents_first_wrong() - find the first frame with wrong contents
 * @start: The first frame.
 * @pages: Number of the page that each frame must hold, or CONTENTS_ANY.
 * @nr_pages: Number of frames.
 * @nr_threads: Number of CPUs to compare with.
 *
 * Return: the lowest index of such a frame, or CONTENTS_FINE.
 */
size_t contents_first_wrong(const unsigned char *start, const int64_t *pages,
			    size_t nr_pages, unsigned int nr_threads);

/* The first byte at which a frame differs from a page's contents. */
size_t contents_first_byte(const unsigned char *frame, int64_t page);

#endif
