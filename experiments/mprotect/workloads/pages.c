// SPDX-License-Identifier: GPL-2.0-only
/* Pages as /proc shows them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "folios.h"
#include "pages.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_FRAME ((1ULL << 55) - 1)
#define PM_SOFT_DIRTY (1ULL << 55)
#define PM_PRESENT (1ULL << 63)

#define LINE_ROOM 512

static int pagemap_fd = -1;
static uint64_t block[BLOCK_PAGES];	/* of pagemap */

static void *room(size_t nr)
{
	uint64_t *words = calloc(nr, sizeof(*words));

	if (!words)
		die(EXIT_CANNOT_RUN, "%zu words: %s", nr, strerror(errno));
	/* Touched, so that no page of it comes while something is timed. */
	memset(words, 1, nr * sizeof(*words));
	return words;
}

void pages_prepare(struct pages *pages, size_t nr)
{
	pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap_fd < 0)
		die(EXIT_CANNOT_RUN, "/proc/self/pagemap: %s", strerror(errno));
	pages->nr = nr;
	pages->entries = room(nr);
	pages->words = room(nr);
}

static void read_entries(uint64_t *entries, const char *at, size_t nr)
{
	size_t nr_bytes = nr * sizeof(*entries);
	ssize_t got = pread(pagemap_fd, entries, nr_bytes,
			    (uintptr_t)at / PAGE_BYTES * sizeof(*entries));

	if (got != (ssize_t)nr_bytes)
		die(EXIT_CANNOT_RUN, "/proc/self/pagemap: %s",
		    got < 0 ? strerror(errno) : "ends too early");
}

/* As many as fit @block, or as are left. */
static size_t next_block(const char *at, size_t page, size_t nr)
{
	size_t some = nr - page < BLOCK_PAGES ? nr - page : BLOCK_PAGES;

	read_entries(block, at + page * PAGE_BYTES, some);
	return some;
}

static uint64_t first_word(const char *at, size_t page)
{
	const uint64_t *word = (const uint64_t *)(at + page * PAGE_BYTES);

	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

bool page_was_there(const struct pages *pages, size_t page)
{
	return pages->entries[page] & PM_PRESENT;
}

size_t pages_there(const struct pages *pages, size_t first, size_t nr)
{
	size_t found = 0;

	for (size_t i = 0; i < nr; i++)
		found += page_was_there(pages, first + i);
	return found;
}

void pages_look(struct pages *pages, const char *at)
{
	for (size_t page = 0; page < pages->nr; page += BLOCK_PAGES) {
		size_t left = pages->nr - page;

		read_entries(pages->entries + page, at + page * PAGE_BYTES,
			     left < BLOCK_PAGES ? left : BLOCK_PAGES);
	}
	/* Reading where nothing is would map a page of zeroes there. */
	for (size_t page = 0; page < pages->nr; page++)
		if (page_was_there(pages, page))
			pages->words[page] = first_word(at, page);
}

/* Of a page that was and is there: whether its frame is the same. */
static bool same_page(uint64_t was, uint64_t is, size_t page, const char *what)
{
	uint64_t differs = was ^ is;

	if (differs & ~(PM_FRAME | PM_SOFT_DIRTY))
		die(EXIT_NOT_VERIFIED,
		    "page %zu: pagemap says %#llx after %s, and said %#llx",
		    page, (unsigned long long)is, what,
		    (unsigned long long)was);
	return !(differs & PM_FRAME);
}

bool pages_are_at(const struct pages *pages, size_t first, size_t nr,
		  const char *at, const char *what)
{
	size_t some;
	bool same = true;

	for (size_t page = 0; page < nr; page += some) {
		some = next_block(at, page, nr);
		for (size_t i = 0; i < some; i++) {
			size_t of = first + page + i;

			if (!page_was_there(pages, of) && block[i] & PM_PRESENT)
				die(EXIT_NOT_VERIFIED,
				    "page %zu is there after %s, and was not",
				    of, what);
			if (page_was_there(pages, of))
				same &= same_page(pages->entries[of], block[i],
						  of, what);
		}
	}
	return same;
}

void pages_hold(const struct pages *pages, size_t first, size_t nr,
		const char *at, const char *what)
{
	for (size_t i = 0; i < nr; i++)
		if (page_was_there(pages, first + i) &&
		    first_word(at, i) != pages->words[first + i])
			die(EXIT_NOT_VERIFIED,
			    "page %zu holds other contents after %s",
			    first + i, what);
}

void pages_verify_gone(const char *at, size_t nr, const char *what)
{
	size_t some;

	for (size_t page = 0; page < nr; page += some) {
		some = next_block(at, page, nr);
		for (size_t i = 0; i < some; i++)
			if (block[i] & PM_PRESENT)
				die(EXIT_NOT_VERIFIED,
				    "page %zu is still mapped after %s",
				    page + i, what);
	}
}

static bool forget(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, "4", 1) == 1;

	if (fd >= 0)
		close(fd);
	return done;
}

/* A kernel without it takes the 4 as well, so ask it about pages of our own. */
bool pages_forget_writes(void)
{
	static char own[2 * PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));

	memset(own, 1, sizeof(own));
	if (!forget())
		return false;
	__atomic_store_n(own, 2, __ATOMIC_SEQ_CST);
	read_entries(block, own, 2);
	return (block[0] & PM_SOFT_DIRTY) && !(block[1] & PM_SOFT_DIRTY);
}

size_t pages_written(const char *at, size_t nr)
{
	size_t some, found = 0;

	for (size_t page = 0; page < nr; page += some) {
		some = next_block(at, page, nr);
		for (size_t i = 0; i < some; i++)
			found += block[i] & PM_PRESENT &&
				 block[i] & PM_SOFT_DIRTY;
	}
	return found;
}

/* What smaps says of the VMAs that lie in a range. */
struct smaps {
	size_t nr_vmas, covered_bytes;
	unsigned long rss_kib, dirty_kib, huge_kib;
	char perms[8];		/* of one that has not what is wanted, or "" */
	bool inside, sticks_out;
};

static void read_vma(struct smaps *smaps, const char *line, uintptr_t from,
		     uintptr_t to, const char *wanted)
{
	unsigned long start, end;
	char perms[8];

	if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) != 3)
		return;
	smaps->inside = start < to && end > from;
	if (!smaps->inside)
		return;
	smaps->nr_vmas++;
	smaps->sticks_out |= start < from || end > to;
	smaps->covered_bytes += (end < to ? end : to) -
				(start > from ? start : from);
	if (strcmp(perms, wanted))
		memcpy(smaps->perms, perms, sizeof(perms));
}

static void read_field(struct smaps *smaps, const char *line)
{
	const struct {
		const char *name;
		unsigned long *sum;
	} fields[] = {
		{ "Rss:", &smaps->rss_kib },
		{ "Private_Dirty:", &smaps->dirty_kib },
		{ "Shared_Dirty:", &smaps->dirty_kib },
		{ "AnonHugePages:", &smaps->huge_kib },
		{ "ShmemPmdMapped:", &smaps->huge_kib },
	};
	unsigned long kib;
	char name[32];

	if (sscanf(line, "%31s %lu kB", name, &kib) != 2)
		return;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!strcmp(name, fields[i].name))
			*fields[i].sum += kib;
}

static void read_smaps(struct smaps *smaps, const char *at, size_t nr_bytes,
		       const char *wanted)
{
	uintptr_t from = (uintptr_t)at, to = from + nr_bytes;
	char line[LINE_ROOM];
	FILE *file = fopen("/proc/self/smaps", "re");

	if (!file)
		die(EXIT_CANNOT_RUN, "/proc/self/smaps: %s", strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		read_vma(smaps, line, from, to, wanted);
		if (smaps->inside)
			read_field(smaps, line);
	}
	fclose(file);
}

void pages_mapped_as(const char *at, size_t nr_bytes,
		     const struct mapped *wanted, const char *what)
{
	struct smaps smaps = { 0 };

	read_smaps(&smaps, at, nr_bytes, wanted->perms);
	if (*smaps.perms)
		die(EXIT_NOT_VERIFIED, "after %s a VMA has %s and not %s", what,
		    smaps.perms, wanted->perms);
	if (smaps.covered_bytes != wanted->nr_bytes || smaps.sticks_out ||
	    smaps.nr_vmas != wanted->nr_vmas)
		die(EXIT_NOT_VERIFIED,
		    "after %s %zu VMAs hold %zu bytes, and not %zu hold %zu",
		    what, smaps.nr_vmas, smaps.covered_bytes, wanted->nr_vmas,
		    wanted->nr_bytes);
	if (smaps.rss_kib != wanted->kib || smaps.dirty_kib != wanted->kib ||
	    smaps.huge_kib)
		die(EXIT_NOT_VERIFIED,
		    "after %s smaps says %lu KiB mapped, %lu dirty, %lu by PMDs, and not %zu, %zu and none",
		    what, smaps.rss_kib, smaps.dirty_kib, smaps.huge_kib,
		    wanted->kib, wanted->kib);
}
