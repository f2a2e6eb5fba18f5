// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "faults.h"
#include "holes.h"
#include "pressure.h"
#include "program.h"

#define VMSTAT_ROOM (64UL << 10)
#define HUGE_ORDER 9

struct stalls {
	unsigned long nr_all;	/* of any task, in compaction */
	unsigned long nr_good;	/* that gave a page */
	unsigned long nr_reclaims;	/* of any task, which then waits as well */
};

static unsigned long value_after(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	if (!at)
		die(EXIT_CANNOT_RUN,
		    "/proc/vmstat: no %s; a kernel without CONFIG_COMPACTION",
		    name + 1);
	return strtoul(at + strlen(name), NULL, 10);
}

static struct stalls stalls_now(void)
{
	static char text[VMSTAT_ROOM];
	static int fd = -1;
	ssize_t got;

	if (fd < 0)
		fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	got = pread(fd, text, sizeof(text) - 1, 0);
	if (got <= 0)
		die(EXIT_CANNOT_RUN, "/proc/vmstat: %s", strerror(errno));
	text[got] = '\0';
	return (struct stalls){
		.nr_all = value_after(text, "\ncompact_stall "),
		.nr_good = value_after(text, "\ncompact_success "),
		.nr_reclaims = value_after(text, "\nallocstall_movable "),
	};
}

size_t free_in_blocks(void)
{
	unsigned long nr_blocks;
	size_t nr_bytes = 0;
	char line[512], zone[16];
	FILE *file = fopen("/proc/buddyinfo", "re");

	while (file && fgets(line, sizeof(line), file)) {
		int order = 0, at = 0, more = 0;

		if (sscanf(line, "Node %*u, zone %15s%n", zone, &at) != 1 ||
		    !strcmp(zone, "DMA"))
			continue;
		for (; sscanf(line + at, "%lu%n", &nr_blocks, &more) == 1;
		     at += more, order++)
			if (order >= HUGE_ORDER)
				nr_bytes += nr_blocks * (PAGE_BYTES << order);
	}
	if (file)
		fclose(file);
	return nr_bytes;
}

static long nr_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

struct fault fault_block(char *block)
{
	struct stalls before = stalls_now(), after;
	struct fault fault;
	long nr_before;

	pressure_began();
	fault.time_ns = now_ns();
	__atomic_store_n(block, 0, __ATOMIC_RELAXED);
	fault.time_ns = now_ns() - fault.time_ns;
	after = stalls_now();
	fault.stalled = after.nr_all != before.nr_all;
	fault.compacted = after.nr_good != before.nr_good;
	pressure_ended(fault.stalled ||
		       after.nr_reclaims != before.nr_reclaims);

	/* Its last page is there already if the first brought all of it. */
	nr_before = nr_faults();
	__atomic_store_n(block + BLOCK_BYTES - PAGE_BYTES, 0, __ATOMIC_RELAXED);
	fault.is_huge = nr_faults() == nr_before;
	return fault;
}

char *map_huge(size_t nr_bytes)
{
	char *at = holes_map(nr_bytes);

	if (madvise(at, nr_bytes, MADV_HUGEPAGE))
		die(EXIT_CANNOT_RUN,
		    "MADV_HUGEPAGE: %s; a kernel without CONFIG_TRANSPARENT_HUGEPAGE",
		    strerror(errno));
	return at;
}
