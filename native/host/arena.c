// SPDX-License-Identifier: GPL-2.0-only
/* The memory in which memory maps are made: mapping it, its pre-states, and comparison. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "launch.h"

/* memcmp() compares this much at once. A byte loop then finds the difference in it. */
#define COMPARE_BYTES (1UL << 20)

static void map_fresh(uintptr_t address, size_t bytes, int flags)
{
	void *start = mmap((void *)address, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags,
			   -1, 0);

	if (start == MAP_FAILED || (uintptr_t)start != address)
		die(RUNNER_NO_RESOURCE, "cannot map %zu bytes at %#lx: %s",
		    bytes, (unsigned long)address, strerror(errno));
	/* The kernel maps vmemmap with 2 MiB pages; without them we measure TLB misses. */
	if (madvise(start, bytes, MADV_HUGEPAGE))
		die(RUNNER_NO_RESOURCE,
		    "transparent huge pages are not available (%s); see /sys/kernel/mm/transparent_hugepage/enabled",
		    strerror(errno));
}

/* Use single ordinary stores, since a string store of this length might bypass caches. */
static void fill_cached(unsigned char *to, size_t bytes, uint64_t word)
{
	for (size_t at = 0; at < bytes; at += sizeof(word))
		arch_store((uint64_t *)(to + at), word);
}

struct arena arena_map(uintptr_t address, size_t bytes, unsigned int nr_threads)
{
	struct arena arena = { .start = (void *)address, .bytes = bytes };

	map_fresh(address, bytes, MAP_FIXED_NOREPLACE);
	arena_set_pre_state(&arena, bytes, PRE_EVICTED, nr_threads);
	return arena;
}

size_t arena_huge_bytes(const struct arena *arena)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char line[256];
	unsigned long start, kib;
	size_t bytes = 0;
	bool inside = false;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%*x ", &start) == 1 && strchr(line, '-'))
			inside = start - (uintptr_t)arena->start < arena->bytes;
		if (inside && sscanf(line, "AnonHugePages: %lu kB", &kib) == 1)
			bytes += kib * 1024;
	}
	if (file)
		fclose(file);
	return bytes;
}

void arena_set_pre_state(const struct arena *arena, size_t bytes,
			 enum pre_state state, unsigned int nr_threads)
{
	struct fill_range range = {
		.start = arena->start, .block_bytes = bytes,
		.stride_bytes = bytes, .nr_blocks = 1,
	};

	switch (state) {
	case PRE_EVICTED:
		/* A non-temporal store evicts its line from every cache. */
		fill_range(&fill_kinds[0], &range, ARENA_POISON, nr_threads);
		break;
	case PRE_DIRTY:
		fill_cached(arena->start, bytes, ARENA_POISON);
		break;
	case PRE_UNTOUCHED:
		map_fresh((uintptr_t)arena->start, arena->bytes, MAP_FIXED);
		break;
	}
}

struct compare_job {
	const unsigned char *start;
	size_t bytes;
	const struct image *image;
	size_t first_difference;
};

static size_t first_difference_in(const struct compare_job *job, size_t from, size_t to)
{
	while (from < to) {
		size_t in_image = from % job->image->bytes;
		size_t bytes = min_size(min_size(COMPARE_BYTES, to - from),
					job->image->bytes - in_image);
		const unsigned char *is = job->start + from;
		const unsigned char *expected = job->image->start + in_image;

		if (memcmp(is, expected, bytes)) {
			size_t i = 0;

			while (is[i] == expected[i])
				i++;
			return from + i;
		}
		from += bytes;
	}
	return ARENA_NO_DIFFERENCE;
}

static void compare_share(void *context, unsigned int index, unsigned int nr)
{
	struct compare_job *job = context;
	size_t share = job->bytes / nr;
	size_t end = index + 1 == nr ? job->bytes : share * (index + 1);
	size_t found = first_difference_in(job, share * index, end);
	size_t first = __atomic_load_n(&job->first_difference, __ATOMIC_RELAXED);

	/* Keep the lowest offset that any thread found. */
	while (found < first &&
	       !__atomic_compare_exchange_n(&job->first_difference, &first, found, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

size_t arena_first_difference(const unsigned char *start, size_t bytes,
			      const struct image *image, unsigned int nr_threads)
{
	struct compare_job job = {
		.start = start, .bytes = bytes, .image = image,
		.first_difference = ARENA_NO_DIFFERENCE,
	};

	pool_run(nr_threads, compare_share, &job);
	return job.first_difference;
}

static void say_difference(const char *row, const char *subject, const char *where,
			   const char *type, size_t offset, const unsigned char *is,
			   const struct image *image)
{
	const unsigned char *expected = image->start + (offset & ~63UL) % image->bytes;
	const struct host_area area = {
		type, is + (offset & ~63UL), expected, 64,
		__start_ream_kernels[launch.variant]->facts,
	};
	char who[256], of[64];

	snprintf(who, sizeof(who), "%s: %s: %s differs from the oracle at byte %zu", row, subject,
		 where, offset);
	snprintf(of, sizeof(of), " of entry %zu", offset / 64);
	if (type)
		area_is_as_expected(who, of, &area);
	else
		fprintf(stderr, "%s\n", who);
	fputs("  is      ", stderr);
	for (unsigned int i = 0; i < 64; i++)
		fprintf(stderr, "%s%02x", i % 8 ? "" : " ", is[(offset & ~63UL) + i]);
	fprintf(stderr, "\n  expected");
	for (unsigned int i = 0; i < 64; i++)
		fprintf(stderr, "%s%02x", i % 8 ? "" : " ", expected[i]);
	fputc('\n', stderr);
}

bool arena_is(const char *row, const char *subject, const char *where,
	      const char *type, const unsigned char *start, size_t bytes,
	      const struct image *image, unsigned int nr_threads)
{
	size_t offset = arena_first_difference(start, bytes, image, nr_threads);

	if (offset == ARENA_NO_DIFFERENCE)
		return true;
	say_difference(row, subject, where, type, offset, start, image);
	return false;
}

void arena_set_guard(unsigned char *start)
{
	memset(start, (unsigned char)ARENA_POISON, ARENA_GUARD_BYTES);
}

bool arena_guard_is_whole(const char *row, const char *subject, const unsigned char *start,
			  unsigned char expected)
{
	for (size_t i = 0; i < ARENA_GUARD_BYTES; i++) {
		if (start[i] != expected) {
			fprintf(stderr, "%s: %s: byte %zu behind the memory map was written\n",
				row, subject, i);
			return false;
		}
	}
	return true;
}
