// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a page keeps at fork(), in folios of several sizes: contents that are
 * pinned, and write protection by userfaultfd. Of every folio some pages have
 * it and their neighbours have not, so that one batch of entries has both.
 *
 *   page      0   1   2   3 ...        of each folio
 *             -   W   -   W            write-protected
 *             -   -   P   P            pinned, of the first folio
 *
 * Expect: with UFFD_FEATURE_EVENT_FORK the child's entries are protected where
 * the parent's are, and nowhere without; the parent keeps its own; what has
 * pinned a page sees what the parent writes later, and the child does not.
 *
 * TAP; exits with 4 where the kernel lacks what all tests need.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

#define EXIT_SKIP 4

#define PAGE 4096UL
#define BYTES (2UL << 20)
#define NR_PAGES (BYTES / PAGE)

#define PAGEMAP_UFFD_WP (1ULL << 57)
#define PAGEMAP_PRESENT (1ULL << 63)
#define PAGEMAP_PFN ((1ULL << 55) - 1)

#define OLD 'o'
#define NEW 'n'

static char *area;
static size_t pages_each;
static int gup = -1;

static void __attribute__((noreturn)) skip_all(const char *what)
{
	printf("1..0 # SKIP %s: %s\n", what, strerror(errno));
	exit(EXIT_SKIP);
}

static void __attribute__((noreturn)) fail(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t entry_of(size_t page)
{
	off_t at = ((uintptr_t)area / PAGE + page) * sizeof(uint64_t);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry;

	if (fd < 0 || pread(fd, &entry, sizeof(entry), at) != sizeof(entry))
		fail("/proc/self/pagemap");
	close(fd);
	return entry;
}

/* Which folios khugepaged's rules allow, by their size. */
static bool set_size(size_t kib, const char *to)
{
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path),
		 "/sys/kernel/mm/transparent_hugepage/hugepages-%zukB/enabled",
		 kib);
	file = fopen(path, "w");
	return file && fputs(to, file) >= 0 && !fclose(file);
}

/* Map and fill the area; whether each of its folios lies in one piece. */
static bool map_area(void)
{
	char *all = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED)
		fail("mmap");
	area = (char *)(((uintptr_t)all + BYTES - 1) & ~(BYTES - 1));
	munmap(all, area - all);
	munmap(area + BYTES, all + BYTES - area);
	if (pages_each > 1)
		madvise(area, BYTES, MADV_HUGEPAGE);
	memset(area, OLD, BYTES);
	for (size_t page = 0; page < NR_PAGES; page++) {
		uint64_t pfn = entry_of(page) & PAGEMAP_PFN;

		if (!pfn || (pfn ^ page) & (pages_each - 1))
			return false;
	}
	return true;
}

static void unmap_area(void)
{
	munmap(area, BYTES);
}

static bool wants_protection(size_t page)
{
	return page & 1;
}

/* Write-protect every second page of the area. */
static int protect(uint64_t features)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = features | UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};
	struct uffdio_register all = {
		.range = { (uintptr_t)area, BYTES },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &all))
		fail("userfaultfd");
	for (size_t page = 0; page < NR_PAGES; page++) {
		struct uffdio_writeprotect one = {
			.range = { (uintptr_t)area + page * PAGE, PAGE },
			.mode = UFFDIO_WRITEPROTECT_MODE_WP,
		};

		if (wants_protection(page) &&
		    ioctl(fd, UFFDIO_WRITEPROTECT, &one))
			fail("UFFDIO_WRITEPROTECT");
	}
	return fd;
}

/* Whether every second page is protected, or, in a child, none. */
static bool is_protected(bool any)
{
	for (size_t page = 0; page < NR_PAGES; page++) {
		uint64_t entry = entry_of(page);

		if (!(entry & PAGEMAP_PRESENT) ||
		    !!(entry & PAGEMAP_UFFD_WP) !=
		    (any && wants_protection(page))) {
			printf("# page %zu: %#llx\n", page,
			       (unsigned long long)entry);
			return false;
		}
	}
	return true;
}

static bool holds(size_t first, size_t last, char what)
{
	for (size_t page = first; page < last; page++)
		for (size_t at = 0; at < PAGE; at += PAGE - 1)
			if (area[page * PAGE + at] != what) {
				printf("# page %zu has %c\n", page,
				       area[page * PAGE + at]);
				return false;
			}
	return true;
}

/* fork() waits until somebody has read of it. */
static void *read_event(void *fd)
{
	struct uffd_msg message;

	if (read(*(int *)fd, &message, sizeof(message)) != sizeof(message) ||
	    message.event != UFFD_EVENT_FORK)
		fail("reading of fork()");
	return (void *)(long)message.arg.fork.ufd;
}

/* fork(); the child says by its exit status whether all is as it should be. */
static bool forked(int uffd, bool (*in_child)(void), void (*in_parent)(void))
{
	int go[2], status = 0;
	void *of_child = NULL;
	pthread_t reader;
	pid_t child;
	char byte;

	if (pipe(go))
		fail("pipe");
	if (uffd >= 0 && pthread_create(&reader, NULL, read_event, &uffd))
		fail("pthread_create");
	fflush(stdout);
	child = fork();
	if (child < 0)
		fail("fork");
	if (!child) {
		bool ok;

		close(go[1]);
		ok = read(go[0], &byte, 1) == 0 && in_child();
		fflush(stdout);
		_exit(!ok);
	}
	if (uffd >= 0)
		pthread_join(reader, &of_child);
	if (in_parent)
		in_parent();
	close(go[0]);
	close(go[1]);
	if (waitpid(child, &status, 0) != child)
		fail("waitpid");
	if (uffd >= 0)
		close((int)(long)of_child);
	return !status;
}

/* --- The tests --- */

static bool child_is_protected(void)
{
	return is_protected(true) && holds(0, NR_PAGES, OLD);
}

static bool child_is_free_to_write(void)
{
	if (!is_protected(false) || !holds(0, NR_PAGES, OLD))
		return false;
	memset(area, NEW, BYTES); /* nobody is there to let it go on */
	return holds(0, NR_PAGES, NEW);
}

static bool test_protection_with_event(void)
{
	int fd = protect(UFFD_FEATURE_EVENT_FORK);
	bool ok = forked(fd, child_is_protected, NULL) && is_protected(true);

	close(fd);
	return ok;
}

static bool test_protection_without_event(void)
{
	int fd = protect(0);
	bool ok = forked(-1, child_is_free_to_write, NULL) &&
		  is_protected(true) && holds(0, NR_PAGES, OLD);

	close(fd);
	return ok;
}

/* Two pages: within the first folio, or one at the end of each of two. */
static size_t first_pinned(void)
{
	return pages_each > 2 ? 2 : 0;
}

static void pin(void)
{
	struct pin_longterm_test range = {
		.addr = (uintptr_t)area + first_pinned() * PAGE,
		.size = 2 * PAGE,
		.flags = PIN_LONGTERM_TEST_FLAG_USE_WRITE,
	};

	if (ioctl(gup, PIN_LONGTERM_TEST_START, &range))
		fail("PIN_LONGTERM_TEST_START");
}

static bool pins_hold(char what)
{
	static char seen[2 * PAGE];
	uint64_t to = (uintptr_t)seen;

	if (ioctl(gup, PIN_LONGTERM_TEST_READ, &to))
		fail("PIN_LONGTERM_TEST_READ");
	for (size_t at = 0; at < sizeof(seen); at++)
		if (seen[at] != what) {
			printf("# pinned byte %zu is %c\n", at, seen[at]);
			return false;
		}
	return true;
}

static void unpin(void)
{
	if (ioctl(gup, PIN_LONGTERM_TEST_STOP))
		fail("PIN_LONGTERM_TEST_STOP");
}

static void write_all(void)
{
	memset(area, NEW, BYTES);
}

static bool child_has_the_old(void)
{
	return holds(0, NR_PAGES, OLD);
}

static bool test_pin(void)
{
	bool ok;

	pin();
	ok = forked(-1, child_has_the_old, write_all) && pins_hold(NEW) &&
	     holds(0, NR_PAGES, NEW);
	unpin();
	return ok;
}

/* A pinned page is copied at once; its copy is protected as the others are. */
static bool test_pin_and_protection(void)
{
	bool ok;
	int fd;

	pin();
	fd = protect(UFFD_FEATURE_EVENT_FORK);
	ok = forked(fd, child_is_protected, NULL) && is_protected(true) &&
	     pins_hold(OLD);
	close(fd);
	unpin();
	return ok;
}

static const struct {
	const char *name;
	bool (*run)(void);
} tests[] = {
	{ "a child is protected where its parent is", test_protection_with_event },
	{ "a child nobody looks after can write", test_protection_without_event },
	{ "a pin sees what the parent writes", test_pin },
	{ "a copy of a pinned page is protected", test_pin_and_protection },
};

#define NR_TESTS (sizeof(tests) / sizeof(tests[0]))

int main(void)
{
	static const size_t sizes_kib[] = { 4, 16, 64, 1024 };
	size_t nr_sizes = sizeof(sizes_kib) / sizeof(sizes_kib[0]);
	unsigned int number = 0, nr_failed = 0;

	gup = open("/sys/kernel/debug/gup_test", O_RDWR);
	if (gup < 0)
		skip_all("/sys/kernel/debug/gup_test");
	printf("TAP version 13\n1..%zu\n", nr_sizes * NR_TESTS);
	for (size_t size = 0; size < nr_sizes; size++) {
		size_t kib = sizes_kib[size];

		pages_each = kib * 1024 / PAGE;
		for (size_t test = 0; test < NR_TESTS; test++) {
			bool ok = pages_each == 1 || set_size(kib, "always");

			ok = map_area() && ok && tests[test].run();
			unmap_area();
			if (pages_each > 1)
				set_size(kib, "never");
			nr_failed += !ok;
			printf("%sok %u - %s, folios of %zu KiB\n",
			       ok ? "" : "not ", ++number, tests[test].name,
			       kib);
		}
	}
	return nr_failed ? 1 : 0;
}
