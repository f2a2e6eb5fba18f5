/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files of /proc and /sys, which other processes see, too. Most can only be
 * written by root. At its end the program writes what stood there before, as
 * far as the file can be read, unless it is killed.
 */
static struct setting {
	char file[120], value[120];
} settings[32];
static int nr_settings;

static void restore(void)
{
	while (nr_settings > 0) {
		const struct setting *one = &settings[--nr_settings];

		if (write_file(one->file, one->value) < 0)
			fprintf(stderr, "%s: not restored to %s\n", one->file, one->value);
	}
}

/* Of several words, the one in brackets is chosen. */
static void keep(const char *file)
{
	struct setting *one = &settings[nr_settings];
	char text[sizeof(one->value)], *value = text, *end;
	FILE *shown;

	for (int i = 0; i < nr_settings; i++)
		if (!strcmp(settings[i].file, file))
			return;
	if (nr_settings == 32 || strlen(file) >= sizeof(one->file))
		return;
	shown = fopen(file, "r");
	if (!shown)
		return;
	if (fgets(text, sizeof(text), shown)) {
		end = strchr(text, '[');
		if (end)
			value = end + 1;
		value[strcspn(value, "]\n")] = 0;
		snprintf(one->file, sizeof(one->file), "%s", file);
		snprintf(one->value, sizeof(one->value), "%s", value);
		if (!nr_settings++)
			atexit(restore);
	}
	fclose(shown);
}

static long do_set(const char *file, const char *value)
{
	keep(file);
	return write_file(file, value);
}

/* orders: a bit for each size of folios that all anonymous memory may get. */
static long do_mthp(long orders)
{
	enum { MAX_ORDER = 9 }; /* of a huge page, which another file decides about, too */
	const char *others;
	char file[80];
	long returned;
	int order;

	for (order = 2; order <= MAX_ORDER; order++) {
		snprintf(file, sizeof(file),
			 "/sys/kernel/mm/transparent_hugepage/hugepages-%dkB/enabled",
			 4 << order);
		others = order == MAX_ORDER ? "inherit" : "never";
		returned = do_set(file, orders >> order & 1 ? "always" : others);
		if (returned < 0)
			return returned;
	}
	return 0;
}

/* The number that the file shows; 0 if it shows more. */
static long do_show(const char *file)
{
	FILE *shown = fopen(file, "r");
	char end[2] = "\n";
	long number;
	int nr;

	if (!shown)
		return -errno;
	nr = fscanf(shown, "%ld%c%c", &number, end, end + 1);
	fclose(shown);
	return (nr == 1 || nr == 2) && *end == '\n' ? number : 0;
}

/* The sum in KiB of what smaps says of the pages; nr 0: it is only read. */
static long do_call_proc(long page, long nr, long x, long y)
{
	static const char *const names[] = {
		"maps", "smaps", "smaps_rollup", "numa_maps", "status", "statm",
	};
	static const char *const sums[] = { "", "Rss:", "Swap:", "Anonymous:" };
	unsigned long from, to;
	long sum = 0, one;
	int is_inside = 0;
	char text[512];
	FILE *file;

	if (x > 5)
		return -EINVAL;
	snprintf(text, sizeof(text), "/proc/self/%s", names[x]);
	file = fopen(text, "r");
	if (!file)
		return -errno;
	while (fgets(text, sizeof(text), file)) {
		if (sscanf(text, "%lx-%lx ", &from, &to) == 2)
			is_inside = from < (unsigned long)at(page + nr) &&
				   to > (unsigned long)at(page);
		else if (is_inside && y > 0 && y < 4 && !strncmp(text, sums[y], strlen(sums[y])) &&
			 sscanf(text + strlen(sums[y]), "%ld", &one) == 1)
			sum += one;
	}
	fclose(file);
	return sum;
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
