/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files of /proc and /sys, which other processes see, too. Most can only be
 * written by root. What is written there stays when the program is over.
 */
static long do_set(const char *file, const char *value)
{
	return write_file(file, value);
}

static long do_call_clear_refs(long x)
{
	char word[24];
	long returned;

	snprintf(word, sizeof(word), "%ld", x);
	returned = write_file("/proc/self/clear_refs", word);
	return returned < 0 ? returned : 0;
}

/* PAGEMAP_SCAN of linux/fs.h, which headers of kernels before 6.7 lack. */
struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t inverted, all_of, any_of, returned;
};

#define SCAN _IOWR('f', 16, struct scan)
#define MOST_REGIONS 48

/* How many regions of pages have one of these categories. */
static long do_call_pagemap_scan(long page, long nr, long x, long y)
{
	uint64_t regions[MOST_REGIONS][3];
	int fd = open("/proc/self/pagemap", O_RDONLY);
	struct scan scan = {
		.size = sizeof(scan), .flags = y, .start = (uint64_t)at(page),
		.end = (uint64_t)at(page + nr), .vec = (uint64_t)regions,
		.vec_len = MOST_REGIONS, .any_of = x, .returned = 0xff,
	};
	long returned = fd < 0 ? -errno : result(ioctl(fd, SCAN, &scan));

	close(fd);
	return returned;
}
