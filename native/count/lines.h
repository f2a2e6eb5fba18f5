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

/* Number of distinct 64-byte lines and 4-KiB pages of measured memory that were touched. */
struct lines {
	size_t nr_read;
	size_t nr_written;
	size_t nr_only_written;
	size_t nr_pages;
};

/* Ignore accesses below an address. The default is where memory of experiments begins. */
void lines_begin_at(uint64_t address);

/* Record an access. Any thread may call it. */
void lines_touch(uint64_t address, unsigned int bytes, enum line_touch how);

struct lines lines_count(void);
void lines_forget(void);

#endif
