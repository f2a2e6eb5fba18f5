// SPDX-License-Identifier: GPL-2.0-only
/* Folios of one size: made by the page fault, seen by /proc. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "folios.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_PFN_MASK ((1ULL << 55) - 1)
#define PM_EXCLUSIVE (1ULL << 56)
#define PM_FILE_OR_SHARED (1ULL << 61)
#define PM_PRESENT (1ULL << 63)

#define FLAG(name) (1ULL << KPF_##name)
#define COMPOUND (FLAG(COMPOUND_HEAD) | FLAG(COMPOUND_TAIL))

/* LRU lists, references and writeback change behind everybody's back. */
#define LASTING_FLAGS (COMPOUND | FLAG(ANON) | FLAG(MMAP) | FLAG(UPTODATE) | \
		       FLAG(DIRTY) | FLAG(SWAPBACKED) | FLAG(THP) | \
		       FLAG(KSM) | FLAG(HUGE) | FLAG(NOPAGE) | \
		       FLAG(HWPOISON) | FLAG(SWAPCACHE))

#define THP "/sys/kernel/mm/transparent_hugepage"

#define HOPELESS_ATTEMPTS 2	/* without a single good folio */
#define RECHECKS 50
#define RECHECK_PAUSE_NS 2000000

static int pagemap_fd = -1;
static int flags_fd = -1;	/* -1: frames are not shown to us */
static int count_fd = -1;

static uint64_t entries[BLOCK_PAGES];		/* of pagemap */
static uint64_t page_facts[BLOCK_PAGES + 1];	/* of the two others */

static size_t nr_blocks(const struct folios *folios)
{
	return folios->nr_bytes / BLOCK_BYTES;
}

static size_t nr_folios(const struct folios *folios)
{
	return folios->nr_bytes / (folios->pages_each * PAGE_BYTES);
}

static unsigned long folio_kib(const struct folios *folios)
{
	return folios->pages_each * PAGE_BYTES / 1024;
}

static uint64_t *first_word(const struct folios *folios, size_t page)
{
	return (uint64_t *)(folios->at + page * PAGE_BYTES);
}

/* Never zero: the kernel may take pages of zeroes for unused. */
static uint64_t wanted_word(const struct folios *folios, size_t page)
{
	return mixed(folios->seed ^ (uint64_t)page << 32) | 1;
}

/* Of one page, word by word: no other place has the same there. */
static uint64_t word_step(uint64_t first)
{
	return first << 1 | 1;
}

static void fill_page(const struct folios *folios, size_t page)
{
	uint64_t *word = first_word(folios, page);
	uint64_t value = wanted_word(folios, page), step = word_step(value);

	*word = value;
	if (!folios->all_bytes)
		return;
	for (size_t i = 1; i < PAGE_BYTES / sizeof(*word); i++)
		word[i] = value + i * step;
}

static bool page_holds(const struct folios *folios, size_t page)
{
	const uint64_t *word = first_word(folios, page);
	uint64_t value = wanted_word(folios, page), step = word_step(value);
	uint64_t wrong = *word ^ value;

	if (!folios->all_bytes)
		return !wrong;
	for (size_t i = 1; i < PAGE_BYTES / sizeof(*word); i++)
		wrong |= word[i] ^ (value + i * step);
	return !wrong;
}

static void read_entries(const char *at)
{
	off_t from = (uintptr_t)at / PAGE_BYTES * sizeof(entries[0]);
	ssize_t got = pread(pagemap_fd, entries, sizeof(entries), from);

	if (got != sizeof(entries))
		die(EXIT_CANNOT_RUN, "/proc/self/pagemap: %s",
		    got < 0 ? strerror(errno) : "ends too early");
}

static void read_block(const struct folios *folios, size_t block)
{
	read_entries(folios->at + block * BLOCK_BYTES);
}

bool folios_open(void)
{
	uintptr_t own = (uintptr_t)entries;

	pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap_fd < 0)
		die(EXIT_CANNOT_RUN, "/proc/self/pagemap: %s", strerror(errno));
	/* Reading them into a page of our own makes sure that it is there. */
	for (int again = 0; again < 2; again++)
		read_entries((const char *)(own - own % PAGE_BYTES));
	if (!(entries[0] & PM_PFN_MASK))
		return false;
	flags_fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	count_fd = open("/proc/kpagecount", O_RDONLY | O_CLOEXEC);
	if (count_fd < 0)
		flags_fd = -1;
	return flags_fd >= 0;
}

/* How many of @nr pages from @pfn on have facts; those are in page_facts. */
static size_t read_facts(int fd, uint64_t pfn, size_t nr)
{
	ssize_t got = pread(fd, page_facts, nr * sizeof(page_facts[0]),
			    pfn * sizeof(page_facts[0]));

	return got < 0 ? 0 : got / sizeof(page_facts[0]);
}

static bool has_flags(uint64_t pfn, size_t nr)
{
	size_t got = read_facts(flags_fd, pfn, nr + 1);

	if (got < nr)
		return false;
	for (size_t i = 0; i < nr; i++) {
		uint64_t wanted = i ? FLAG(COMPOUND_TAIL) : FLAG(COMPOUND_HEAD);

		if (nr == 1)
			wanted = 0;
		if ((page_facts[i] & COMPOUND) != wanted ||
		    !(page_facts[i] & FLAG(ANON)))
			return false;
	}
	/* It ends where we think; after the last page of all comes none. */
	return got == nr || !(page_facts[nr] & FLAG(COMPOUND_TAIL));
}

/*
 *   pagemap     pfn      pfn+1  ...  pfn+nr-1  anything
 *   kpageflags  HEAD     TAIL   ...  TAIL      not TAIL
 * and pfn is a multiple of nr. Where frames are not shown: pages are there.
 */
static bool folio_is_good(const uint64_t *entry, size_t nr)
{
	uint64_t pfn = entry[0] & PM_PFN_MASK;

	for (size_t i = 0; i < nr; i++)
		if ((entry[i] & (PM_PRESENT | PM_FILE_OR_SHARED)) != PM_PRESENT)
			return false;
	if (flags_fd < 0)
		return true;
	for (size_t i = 1; i < nr; i++)
		if ((entry[i] & PM_PFN_MASK) != pfn + i)
			return false;
	return pfn % nr == 0 && has_flags(pfn, nr);
}

static size_t nr_good_folios(const struct folios *folios)
{
	size_t nr = folios->pages_each, nr_good = 0;

	for (size_t block = 0; block < nr_blocks(folios); block++) {
		read_block(folios, block);
		for (size_t i = 0; i < BLOCK_PAGES; i += nr)
			nr_good += folio_is_good(&entries[i], nr);
	}
	return nr_good;
}

static bool folio_has_maps(const uint64_t *entry, size_t nr,
			   unsigned int nr_maps)
{
	if (flags_fd < 0)
		return !!(*entry & PM_EXCLUSIVE) == (nr_maps == 1);
	if (read_facts(count_fd, *entry & PM_PFN_MASK, nr) != nr)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (page_facts[i] != nr_maps)
			return false;
	return true;
}

static bool block_has_maps(const struct folios *folios, size_t block,
			   unsigned int nr_maps, bool *disturbed)
{
	size_t nr = folios->pages_each;

	read_block(folios, block);
	for (size_t i = 0; i < BLOCK_PAGES; i += nr) {
		*disturbed = !folio_is_good(&entries[i], nr);
		if (*disturbed || !folio_has_maps(&entries[i], nr, nr_maps))
			return false;
	}
	return true;
}

bool folios_mapped_by(const struct folios *folios, unsigned int nr_maps)
{
	const struct timespec interval = { .tv_nsec = RECHECK_PAUSE_NS };

	for (size_t block = 0; block < nr_blocks(folios); block++) {
		bool disturbed = false;
		int check = 0;

		while (!block_has_maps(folios, block, nr_maps, &disturbed)) {
			if (++check == RECHECKS && disturbed)
				return false;
			if (check == RECHECKS)
				die(EXIT_NOT_VERIFIED,
				    "folios of %lu KiB: a page of the %zu. 2 MiB is not mapped %u times",
				    folio_kib(folios), block + 1, nr_maps);
			nanosleep(&interval, NULL);
		}
	}
	return true;
}

void folios_verify_gone(const struct folios *folios, const char *what)
{
	for (size_t block = 0; block < nr_blocks(folios); block++) {
		read_block(folios, block);
		for (size_t i = 0; i < BLOCK_PAGES; i++)
			if (entries[i] & PM_PRESENT)
				die(EXIT_NOT_VERIFIED,
				    "folios of %lu KiB: page %zu is still mapped after %s",
				    folio_kib(folios), block * BLOCK_PAGES + i,
				    what);
	}
}

bool folios_hold(const struct folios *folios)
{
	for (size_t page = 0; page < folios->nr_bytes / PAGE_BYTES; page++)
		if (!page_holds(folios, page))
			return false;
	return true;
}

uint64_t folios_digest(const struct folios *folios)
{
	uint64_t digest = 0;

	for (size_t block = 0; block < nr_blocks(folios); block++) {
		read_block(folios, block);
		for (size_t i = 0; i < BLOCK_PAGES; i++) {
			size_t page = block * BLOCK_PAGES + i;
			uint64_t pfn = entries[i] & PM_PFN_MASK;

			digest = mixed(digest ^ (entries[i] & ~PM_PFN_MASK));
			digest = mixed(digest ^ pfn % folios->pages_each);
			digest = mixed(digest ^ *first_word(folios, page));
			if (flags_fd < 0)
				continue;
			if (read_facts(flags_fd, pfn, 1) == 1)
				digest = mixed(digest ^
					       (page_facts[0] & LASTING_FLAGS));
			if (read_facts(count_fd, pfn, 1) == 1)
				digest = mixed(digest ^ page_facts[0]);
		}
	}
	return digest;
}

void folios_check_options(const struct folios *folios)
{
	if (!folios->pages_each)
		die(EXIT_USAGE, "--folio-kib K: missing");
	if (!folios->nr_bytes || folios->nr_bytes % BLOCK_BYTES)
		die(EXIT_USAGE, "--bytes %zu: not a multiple of 2 MiB",
		    folios->nr_bytes);
}

void folios_reserve(struct folios *folios)
{
	size_t room = folios->nr_bytes + 3 * BLOCK_BYTES;
	char *at = mmap(NULL, room, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		die(EXIT_CANNOT_RUN, "reserve %zu bytes: %s", room,
		    strerror(errno));
	/* At least a block before it, and one after it, stay ours. */
	at += 2 * BLOCK_BYTES - 1;
	folios->at = at - (uintptr_t)at % BLOCK_BYTES;
}

void folios_release(const struct folios *folios)
{
	if (mmap(folios->at, folios->nr_bytes, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		die(EXIT_FAILED, "release: %s", strerror(errno));
}

static void advise(char *at, size_t nr_bytes, int advice, const char *name)
{
	if (madvise(at, nr_bytes, advice))
		die(EXIT_CANNOT_RUN, "MADV_%s: %s; has this kernel THP?", name,
		    strerror(errno));
}

/*
 * Every number below @count once, in an order that @key chooses, without a
 * list of them: fork() would copy that. Each step permutes the numbers of as
 * many bits as @count has; one that lands beyond @count goes round again.
 */
static size_t shuffled(size_t number, size_t count, uint64_t key)
{
	int bits = count > 1 ? 64 - __builtin_clzl(count - 1) : 1;
	size_t mask = (1UL << bits) - 1;

	do {
		for (int step = 0; step < 3; step++) {
			number = number * (mixed(key + step) | 1) + mixed(key);
			number &= mask;
			number ^= number >> (bits / 2 + 1);
		}
	} while (number >= count);
	return number;
}

static void fill(const struct folios *folios, uint64_t key)
{
	size_t nr = folios->pages_each, count = nr_folios(folios);

	for (size_t i = 0; i < count; i++) {
		size_t page = folios->scattered ? shuffled(i, count, key) : i;

		page *= nr;
		for (size_t end = page + nr; page < end; page++)
			fill_page(folios, page);
	}
}

void folios_refill(struct folios *folios, uint64_t seed)
{
	folios->seed = seed;
	for (size_t page = 0; page < folios->nr_bytes / PAGE_BYTES; page++)
		fill_page(folios, page);
}

/*
 * A VMA that begins within what a PMD maps makes the kernel map that by PTEs;
 * when it is one VMA again they stay. Unlike mprotect() it alters no PTE.
 */
static void split_pmd_mappings(const struct folios *folios)
{
	for (size_t at = PAGE_BYTES; at < folios->nr_bytes; at += BLOCK_BYTES) {
		advise(folios->at + at, PAGE_BYTES, MADV_DONTFORK, "DONTFORK");
		advise(folios->at + at, PAGE_BYTES, MADV_DOFORK, "DOFORK");
	}
}

/* mbind(2) without libnuma; @nodes 0: no policy. */
static void bind_to(const struct folios *folios, unsigned long nodes)
{
	int mode = nodes ? MPOL_BIND : MPOL_DEFAULT;

	if (syscall(SYS_mbind, folios->at, folios->nr_bytes, mode,
		    nodes ? &nodes : NULL, nodes ? 8 * sizeof(nodes) + 1 : 0,
		    0))
		die(EXIT_CANNOT_RUN, "mbind to nodes %#lx: %s", nodes,
		    strerror(errno));
}

static void map_fresh(const struct folios *folios, uint64_t key)
{
	bool large = folios->pages_each > 1;

	folios_release(folios);
	if (mmap(folios->at, folios->nr_bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		die(EXIT_CANNOT_RUN, "map %zu bytes: %s", folios->nr_bytes,
		    strerror(errno));
	if (large)
		advise(folios->at, folios->nr_bytes, MADV_HUGEPAGE, "HUGEPAGE");
	else	/* EINVAL: a kernel without huge pages gives none anyway */
		madvise(folios->at, folios->nr_bytes, MADV_NOHUGEPAGE);
	if (folios->nodes)
		bind_to(folios, folios->nodes);
	fill(folios, key);
	if (folios->nodes)
		bind_to(folios, 0);
	if (folios->pages_each == BLOCK_PAGES && !folios->by_pmd)
		split_pmd_mappings(folios);
	if (large)	/* khugepaged keeps out then */
		advise(folios->at, folios->nr_bytes, MADV_NOHUGEPAGE,
		       "NOHUGEPAGE");
}

/*
 * Whether all is one VMA, and PMDs map all of it or nothing, which only smaps
 * tells; a kernel without smaps has no pagemap either.
 */
static bool is_mapped_as_wanted(const struct folios *folios)
{
	uintptr_t from = (uintptr_t)folios->at, to = from + folios->nr_bytes;
	unsigned long start, end, kib, huge_kib = 0;
	bool inside = false, whole = false;
	char line[512];
	FILE *smaps = fopen("/proc/self/smaps", "re");

	if (!smaps)
		die(EXIT_CANNOT_RUN, "/proc/self/smaps: %s", strerror(errno));
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
			inside = start < to && end > from;
			whole |= start == from && end == to;
		} else if (inside &&
			   sscanf(line, "AnonHugePages: %lu kB", &kib) == 1) {
			huge_kib += kib;
		}
	}
	fclose(smaps);
	return whole && huge_kib == (folios->by_pmd ? folios->nr_bytes / 1024 : 0);
}

bool folios_whole(const struct folios *folios)
{
	return nr_good_folios(folios) == nr_folios(folios) &&
	       is_mapped_as_wanted(folios);
}

size_t folio_pages(unsigned long kib)
{
	size_t nr_pages = kib * 1024 / PAGE_BYTES;

	if (kib % (PAGE_BYTES / 1024) || !nr_pages || nr_pages > BLOCK_PAGES ||
	    (nr_pages & (nr_pages - 1)))
		die(EXIT_USAGE, "--folio-kib %lu: 4, 16, 32, and so on to 2048",
		    kib);
	return nr_pages;
}

void folios_require(const struct folios *folios, bool sees_frames)
{
	unsigned long kib = folio_kib(folios);
	char setting[128];

	if (sysconf(_SC_PAGESIZE) != (long)PAGE_BYTES)
		die(EXIT_CANNOT_RUN, "pages of %ld bytes: only 4096 are known",
		    sysconf(_SC_PAGESIZE));
	if (kib == 4)
		return;
	if (!sees_frames)
		die(EXIT_CANNOT_RUN,
		    "folios of %lu KiB: page frames are shown to root only, and by kernels with /proc/kpageflags; without, --folio-kib 4",
		    kib);
	folios_setting(folios, setting, sizeof(setting));
	if (!*setting && !access(THP, F_OK))
		die(EXIT_CANNOT_RUN,
		    "folios of %lu KiB: this kernel knows no such size, there is no "
		    THP "/hugepages-%lukB/enabled", kib, kib);
}

void folios_setting(const struct folios *folios, char *text, size_t text_bytes)
{
	char path[128];
	ssize_t got = -1;
	int fd;

	snprintf(path, sizeof(path),
		 THP "/hugepages-%lukB/enabled", folio_kib(folios));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, text_bytes - 1);
		close(fd);
	}
	text[got < 0 ? 0 : got] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static _Noreturn void no_folios(const struct folios *folios, size_t nr_best,
				unsigned int nr_attempts)
{
	char setting[128];

	if (nr_best == nr_folios(folios))
		die(EXIT_CANNOT_RUN,
		    "folios of %lu KiB: %s map them, they lie in several VMAs, or they keep moving, in each of %u attempts",
		    folio_kib(folios), folios->by_pmd ? "no PMDs" : "PMDs",
		    nr_attempts);
	folios_setting(folios, setting, sizeof(setting));
	die(EXIT_CANNOT_RUN,
	    "folios of %lu KiB: %zu of %zu good in the best of %u attempts; hugepages-%lukB/enabled is '%s', it takes madvise, never for larger sizes, and unfragmented memory (sysctl vm.drop_caches=3 vm.compact_memory=1)",
	    folio_kib(folios), nr_best, nr_folios(folios), nr_attempts,
	    folio_kib(folios), setting);
}

void folios_map(struct folios *folios, unsigned long round)
{
	size_t nr_best = 0;

	for (unsigned int attempt = 1; ; attempt++) {
		size_t nr_good;

		map_fresh(folios, folios->seed + round);
		nr_good = nr_good_folios(folios);
		if (nr_good == nr_folios(folios) &&
		    is_mapped_as_wanted(folios) && folios_mapped_by(folios, 1))
			return;
		if (nr_good > nr_best)
			nr_best = nr_good;
		if (attempt == MOST_ATTEMPTS ||
		    (attempt == HOPELESS_ATTEMPTS && !nr_best))
			no_folios(folios, nr_best, attempt);
		folios->nr_redone++;
	}
}
