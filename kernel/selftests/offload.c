// SPDX-License-Identifier: GPL-2.0-only
/*
 * Migration whose copies others make: move_pages(2) of an area from node to
 * node, by each provider and in folios of several sizes, to and fro, while one
 * page is pinned and every second one is write-protected by userfaultfd.
 *
 * Expect: every page but those of the pinned folio arrives, and tells so; all
 * bytes and all protection are as they were; the provider has copied.
 *
 * And of hugetlb pages, which no provider copies, to a node that has none of
 * its own. A page that is allocated for the move alone is marked as temporary.
 *
 * The modules swdma, dcbm and mtcopy are loaded before. TAP.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/userfaultfd.h>

/* mm/gup_test.h, which is not for user space. */
#define PIN_LONGTERM_TEST_START _IOW('g', 7, struct pin_longterm_test)
#define PIN_LONGTERM_TEST_STOP _IO('g', 8)
#define PIN_LONGTERM_TEST_READ _IOW('g', 9, uint64_t)
#define PIN_LONGTERM_TEST_FLAG_USE_WRITE 1

struct pin_longterm_test {
	uint64_t addr;
	uint64_t size;
	uint32_t flags;
};

#define PAGE 4096UL
#define BYTES (8UL << 20)
#define NR_PAGES (BYTES / PAGE)
#define HUGE_BYTES (2UL << 20)
#define MOVE_ALL 4		/* MPOL_MF_MOVE_ALL */

#define PAGEMAP_UFFD_WP (1ULL << 57)

static char *area;
static int gup, uffd;
static void *pages[NR_PAGES];
static int nodes[NR_PAGES], status[NR_PAGES];

static void __attribute__((noreturn)) fail(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail(path);
	close(fd);
}

static void set_parameter(const char *module, const char *name,
			  const char *value)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module,
		 name);
	put(path, value);
}

static unsigned long copied_by(const char *module)
{
	char path[96];
	unsigned long nr = 0;
	FILE *file;

	snprintf(path, sizeof(path),
		 "/sys/module/%s/parameters/folios_migrated", module);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%lu", &nr) != 1)
		fail(path);
	fclose(file);
	return nr;
}

static uint64_t word_of(size_t page, size_t word, uint64_t seed)
{
	return (page * 512 + word + 1) * (seed | 1) * 0x9e3779b97f4a7c15ULL;
}

static void fill(uint64_t seed)
{
	for (size_t page = 0; page < NR_PAGES; page++)
		for (size_t word = 0; word < 512; word++)
			((uint64_t *)(area + page * PAGE))[word] =
				word_of(page, word, seed);
}

static bool holds(uint64_t seed)
{
	for (size_t page = 0; page < NR_PAGES; page++)
		for (size_t word = 0; word < 512; word++)
			if (((uint64_t *)(area + page * PAGE))[word] !=
			    word_of(page, word, seed)) {
				printf("# page %zu, word %zu\n", page, word);
				return false;
			}
	return true;
}

static bool is_protected(void)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	static uint64_t entries[NR_PAGES];
	bool ok = true;

	if (fd < 0 || pread(fd, entries, sizeof(entries),
			    (uintptr_t)area / PAGE * sizeof(uint64_t)) !=
	    sizeof(entries))
		fail("/proc/self/pagemap");
	close(fd);
	for (size_t page = 0; page < NR_PAGES; page++)
		if (!!(entries[page] & PAGEMAP_UFFD_WP) != (page & 1)) {
			printf("# page %zu: %#llx\n", page,
			       (unsigned long long)entries[page]);
			ok = false;
		}
	return ok;
}

static void map_area(size_t kib, uint64_t seed)
{
	static const char *const sizes[] = { "16", "64", "2048" };
	char path[96], *all;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(path, sizeof(path),
			 "/sys/kernel/mm/transparent_hugepage/hugepages-%skB/enabled",
			 sizes[i]);
		put(path, strtoul(sizes[i], NULL, 10) == kib ? "always" : "never");
	}
	all = mmap(NULL, BYTES + HUGE_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		fail("mmap");
	area = (char *)(((uintptr_t)all + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
	fill(seed);
	for (size_t page = 0; page < NR_PAGES; page++)
		pages[page] = area + page * PAGE;
}

static void protect(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};
	struct uffdio_register all = {
		.range = { (uintptr_t)area, BYTES },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &all))
		fail("userfaultfd");
	for (size_t page = 1; page < NR_PAGES; page += 2) {
		struct uffdio_writeprotect one = {
			.range = { (uintptr_t)pages[page], PAGE },
			.mode = UFFDIO_WRITEPROTECT_MODE_WP,
		};

		if (ioctl(uffd, UFFDIO_WRITEPROTECT, &one))
			fail("UFFDIO_WRITEPROTECT");
	}
}

/*
 * Pages that are not where they should be: those of @stays must not have moved.
 * Every @each th page is named. One that is named again after its folio was
 * isolated ends a batch, and move_pages(2) gives up after a batch of which a
 * folio, as one that is pinned, did not move.
 */
static unsigned long move(int to, size_t each, size_t stays_from,
			  size_t nr_stay)
{
	unsigned long nr_wrong = 0, nr = NR_PAGES / each;
	static void *named[NR_PAGES];

	for (size_t i = 0; i < nr; i++) {
		named[i] = pages[i * each];
		nodes[i] = to;
	}
	if (syscall(SYS_move_pages, 0, nr, named, nodes, status, MOVE_ALL) < 0)
		fail("move_pages");
	if (syscall(SYS_move_pages, 0, NR_PAGES, pages, NULL, status, 0))
		fail("move_pages");
	for (size_t page = 0; page < NR_PAGES; page++) {
		bool stays = page >= stays_from && page < stays_from + nr_stay;

		nr_wrong += (status[page] == to) == stays;
	}
	return nr_wrong;
}

static bool moves(const char *module, size_t kib)
{
	struct pin_longterm_test pinned = {
		.size = PAGE,
		.flags = PIN_LONGTERM_TEST_FLAG_USE_WRITE,
	};
	size_t each = kib * 1024 / PAGE, stays = NR_PAGES / 2;
	unsigned long before, nr_wrong;
	uint64_t seed = kib * 3 + module[0];
	static char seen[PAGE];
	uint64_t to = (uintptr_t)seen;
	bool ok;

	map_area(kib, seed);
	move(0, 1, 0, NR_PAGES);	/* wherever it was */
	protect();
	pinned.addr = (uintptr_t)pages[stays + each / 2];
	if (ioctl(gup, PIN_LONGTERM_TEST_START, &pinned))
		fail("PIN_LONGTERM_TEST_START");
	before = copied_by(module);
	nr_wrong = move(1, each, stays, each);
	ok = holds(seed) && is_protected();
	nr_wrong += move(0, 1, 0, 0);	/* some were split, by 6.12 */
	ok = ok && holds(seed) && is_protected() && !nr_wrong;
	if (nr_wrong)
		printf("# %lu pages are not where they should be\n", nr_wrong);
	if (copied_by(module) == before) {
		printf("# %s copied nothing\n", module);
		ok = false;
	}
	if (ioctl(gup, PIN_LONGTERM_TEST_READ, &to))
		fail("PIN_LONGTERM_TEST_READ");
	if (memcmp(seen, (void *)(uintptr_t)pinned.addr, PAGE)) {
		printf("# the pin sees another page\n");
		ok = false;
	}
	if (ioctl(gup, PIN_LONGTERM_TEST_STOP))
		fail("PIN_LONGTERM_TEST_STOP");
	close(uffd);
	munmap(area, BYTES);
	return ok;
}

static bool moves_hugetlb(const char *module)
{
	static const char *const pool[] = {
		"/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
		"/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages",
	};
	uint64_t seed = module[0] * 7;
	unsigned long nr_wrong;
	char nr[8];
	bool ok;

	snprintf(nr, sizeof(nr), "%lu", BYTES / HUGE_BYTES);
	put(pool[1], "0");
	put(pool[0], nr);
	area = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (area == MAP_FAILED)
		fail("mmap of hugetlb pages");
	fill(seed);
	for (size_t page = 0; page < NR_PAGES; page++)
		pages[page] = area + page * PAGE;
	nr_wrong = move(1, HUGE_BYTES / PAGE, 0, 0);
	ok = holds(seed) && !nr_wrong;
	if (nr_wrong)
		printf("# %lu pages are not where they should be\n", nr_wrong);
	munmap(area, BYTES);
	put(pool[0], "0");
	put(pool[1], "0");
	return ok;
}

static bool says(bool ok, unsigned int number, const char *what,
		 const char *module)
{
	printf("%sok %u - %s moved by %s\n", ok ? "" : "not ", number, what,
	       module);
	return ok;
}

int main(void)
{
	static const char *const modules[] = { "dcbm", "mtcopy" };
	static const size_t sizes_kib[] = { 4, 16, 64, 2048 };
	unsigned int number = 0, nr_failed = 0;

	gup = open("/sys/kernel/debug/gup_test", O_RDWR);
	if (gup < 0)
		fail("/sys/kernel/debug/gup_test");
	printf("TAP version 13\n1..%zu\n", sizeof(modules) / sizeof(modules[0]) *
	       (sizeof(sizes_kib) / sizeof(sizes_kib[0]) + 1));
	for (size_t i = 0; i < 2; i++) {
		/* As much as it can, however slow. */
		if (!strcmp(modules[i], "dcbm"))
			set_parameter("dcbm", "adaptive", "0");
		set_parameter(modules[i], "offloading", "1");
		for (size_t j = 0; j < 4; j++) {
			char what[32];

			snprintf(what, sizeof(what), "folios of %zu KiB",
				 sizes_kib[j]);
			nr_failed += !says(moves(modules[i], sizes_kib[j]),
					   ++number, what, modules[i]);
		}
		nr_failed += !says(moves_hugetlb(modules[i]), ++number,
				   "hugetlb pages", modules[i]);
		set_parameter(modules[i], "offloading", "0");
	}
	return nr_failed ? 1 : 0;
}
