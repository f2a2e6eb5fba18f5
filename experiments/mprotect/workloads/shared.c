// SPDX-License-Identifier: GPL-2.0-only
/* Shared memory in folios of one size: made by the page fault, seen by /proc. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "shared.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_FRAME ((1ULL << 55) - 1)
#define PM_FILE_OR_SHARED (1ULL << 61)
#define PM_PRESENT (1ULL << 63)

#define FLAG(name) (1ULL << KPF_##name)
#define KINDS (FLAG(COMPOUND_HEAD) | FLAG(COMPOUND_TAIL) | FLAG(ANON))

#define SETTING "/sys/kernel/mm/transparent_hugepage/hugepages-%lukB/shmem_enabled"

static unsigned long folio_kib(const struct folios *folios)
{
	return folios->pages_each * PAGE_BYTES / 1024;
}

void shared_require(const struct folios *folios)
{
	char path[128];

	snprintf(path, sizeof(path), SETTING, folio_kib(folios));
	if (folios->pages_each > 1 && access(path, F_OK))
		die(EXIT_CANNOT_RUN, "shared folios of %lu KiB: no %s",
		    folio_kib(folios), path);
}

static void advise(const struct folios *folios, size_t from, size_t nr_bytes,
		   int advice)
{
	if (madvise(folios->at + from, nr_bytes, advice) &&
	    folios->pages_each > 1)
		die(EXIT_CANNOT_RUN, "madvise %d: %s", advice, strerror(errno));
}

/*
 * A PMD that maps shared memory is dropped when its VMA is split, not split
 * itself. What is advised against huge pages is mapped by PTEs the next time.
 */
static void drop_pmds(const struct folios *folios)
{
	for (size_t at = 0; at < folios->nr_bytes; at += BLOCK_BYTES) {
		advise(folios, at + PAGE_BYTES, PAGE_BYTES, MADV_DONTFORK);
		advise(folios, at + PAGE_BYTES, PAGE_BYTES, MADV_DOFORK);
	}
}

static void map_fresh(struct folios *folios)
{
	bool large = folios->pages_each > 1;

	folios_release(folios);
	if (mmap(folios->at, folios->nr_bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		die(EXIT_CANNOT_RUN, "map %zu bytes: %s", folios->nr_bytes,
		    strerror(errno));
	advise(folios, 0, folios->nr_bytes,
	       large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	folios_refill(folios, folios->seed);
	if (folios->pages_each == BLOCK_PAGES)
		drop_pmds(folios);
	if (large) {
		advise(folios, 0, folios->nr_bytes, MADV_NOHUGEPAGE);
		folios_refill(folios, folios->seed);
	}
}

/* What /proc/kpageflags says of @nr pages from @pfn on, and of the next. */
static bool is_folio(int flags_fd, uint64_t pfn, size_t nr)
{
	static uint64_t flags[BLOCK_PAGES + 1];
	ssize_t got = pread(flags_fd, flags, (nr + 1) * sizeof(flags[0]),
			    pfn * sizeof(flags[0]));

	if (got < (ssize_t)(nr * sizeof(flags[0])))
		return false;
	for (size_t i = 0; i < nr; i++) {
		uint64_t wanted = i ? FLAG(COMPOUND_TAIL) : FLAG(COMPOUND_HEAD);

		if ((flags[i] & KINDS) != (nr > 1 ? wanted : 0))
			return false;
	}
	return got == (ssize_t)(nr * sizeof(flags[0])) ||
	       !(flags[nr] & FLAG(COMPOUND_TAIL));
}

static bool is_good(int flags_fd, const uint64_t *entry, size_t nr)
{
	const uint64_t wanted = PM_PRESENT | PM_FILE_OR_SHARED;
	uint64_t pfn = entry[0] & PM_FRAME;

	for (size_t i = 0; i < nr; i++)
		if ((entry[i] & wanted) != wanted)
			return false;
	if (!pfn || flags_fd < 0)	/* frames are not shown to us */
		return nr == 1;
	for (size_t i = 1; i < nr; i++)
		if ((entry[i] & PM_FRAME) != pfn + i)
			return false;
	return pfn % nr == 0 && is_folio(flags_fd, pfn, nr);
}

static size_t nr_good(const struct folios *folios)
{
	static uint64_t entries[BLOCK_PAGES];
	int flags_fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t nr = folios->pages_each, found = 0;

	if (fd < 0)
		die(EXIT_CANNOT_RUN, "/proc/self/pagemap: %s", strerror(errno));
	for (size_t at = 0; at < folios->nr_bytes; at += BLOCK_BYTES) {
		uintptr_t page = ((uintptr_t)folios->at + at) / PAGE_BYTES;
		off_t from = page * sizeof(entries[0]);

		if (pread(fd, entries, sizeof(entries), from) !=
		    (ssize_t)sizeof(entries))
			die(EXIT_CANNOT_RUN, "/proc/self/pagemap ends too early");
		for (size_t i = 0; i < BLOCK_PAGES; i += nr)
			found += is_good(flags_fd, entries + i, nr);
	}
	close(fd);
	if (flags_fd >= 0)
		close(flags_fd);
	return found;
}

void shared_map(struct folios *folios)
{
	size_t wanted = folios->nr_bytes / PAGE_BYTES / folios->pages_each;
	size_t found = 0;

	for (int attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
		map_fresh(folios);
		found = nr_good(folios);
		if (found == wanted)
			return;
		folios->nr_redone++;
	}
	die(EXIT_CANNOT_RUN,
	    "shared folios of %lu KiB: %zu of %zu good in the last of %d attempts; it takes shmem_enabled = advise, never for other sizes, and unfragmented memory (sysctl vm.drop_caches=3 vm.compact_memory=1)",
	    folio_kib(folios), found, wanted, MOST_ATTEMPTS);
}
