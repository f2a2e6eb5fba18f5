/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REAM_LINES_H
#define REAM_LINES_H

#include <stddef.h>
#include <stdint.h>

#define LINE_BYTES 64

enum line_touch {
	LINE_READ = 1,
	LINE_WRITTEN = 2,
};

/* How many distinct lines of 64 bytes and pages of 4096 of measured memory were touched. */
struct lines {
	size_t nr_read;
	size_t nr_written;
	size_t nr_only_written;
	size_t nr_pages;
};

/* Accesses below an address are not noted; without this, what experiments map is noted alone. */
void lines_begin_at(uint64_t address);

/* Note an access; from any thread. */
void lines_touch(uint64_t address, unsigned int bytes, enum line_touch how);

struct lines lines_count(void);
void lines_forget(void);

#endif
