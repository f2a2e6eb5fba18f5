// SPDX-License-Identifier: GPL-2.0-only
/*
 * A worker: memory of several sizes of folios, which the main thread moves, and
 * compares, while another thread writes it all the time.
 *
 * Each page has a generation, and holds what its place and generation say. A
 * page is written with the next one; so what it held before, in this frame or
 * another, is never right again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "program.h"
#include "soak.h"

#define PAGE_BYTES 4096UL
#define PAGE_WORDS (PAGE_BYTES / sizeof(uint64_t))
#define BUFFER_BYTES (8UL << 20)
#define BUFFER_PAGES (BUFFER_BYTES / PAGE_BYTES)
#define HUGE_BYTES (2UL << 20)
#define MOVES_EACH 6		/* of a mapping; the kernel splits folios */
#define WRITE_PAUSE_NS 200000	/* several pages while a batch is copied */
#define NR_BITS (8 * sizeof(unsigned long) + 1)

/* Words would have to be made one by one, which an emulated CPU is slow at. */
#define NR_BYTES_WORDS 65536
static uint64_t bytes[NR_BYTES_WORDS];

static const size_t sizes[] = {
	4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20,
	2 << 20, 2 << 20, 2 << 20, 2 << 20, 2 << 20,	/* most bytes an hour */
};

static struct worker {
	unsigned long number;
	uint64_t chance;
	struct totals *totals;
	char *at;
	uint32_t generation[BUFFER_PAGES];
	pthread_mutex_t lock;	/* of generations, and of what pages hold */
	int status[BUFFER_PAGES];
	int targets[BUFFER_PAGES];
	void *addresses[BUFFER_PAGES];
} self;

unsigned long below(uint64_t *chance, unsigned long limit)
{
	*chance = mixed(*chance);
	return *chance % limit;
}

/* --- Contents --- */

/* Begins the page; no other place and generation has the same. */
static uint64_t value_of(size_t page)
{
	return mixed(self.number << 56 ^ (uint64_t)page << 32 ^
		     self.generation[page]) | 1;
}

/* The rest: a page out of random bytes, where it is again another. */
static const uint64_t *rest_of(size_t page)
{
	return &bytes[value_of(page) % (NR_BYTES_WORDS - PAGE_WORDS)];
}

static void write_page(size_t page)
{
	uint64_t *word = (uint64_t *)(self.at + page * PAGE_BYTES);

	self.generation[page]++;
	word[0] = value_of(page);
	memcpy(&word[1], rest_of(page), PAGE_BYTES - sizeof(*word));
}

static bool page_holds(size_t page)
{
	const uint64_t *word = (const uint64_t *)(self.at + page * PAGE_BYTES);

	return word[0] == value_of(page) &&
	       !memcmp(&word[1], rest_of(page), PAGE_BYTES - sizeof(*word));
}

static void check_page(size_t page, const char *after)
{
	if (page_holds(page))
		return;
	die(EXIT_NOT_VERIFIED,
	    "worker %lu: page %zu of generation %u is wrong after %s; its first word is %#llx, not %#llx",
	    self.number, page, self.generation[page], after,
	    *(unsigned long long *)(self.at + page * PAGE_BYTES),
	    (unsigned long long)value_of(page));
}

static void check_all(const char *after)
{
	for (size_t page = 0; page < BUFFER_PAGES; page++)
		check_page(page, after);
}

static void write_all(void)
{
	for (size_t page = 0; page < BUFFER_PAGES; page++)
		write_page(page);
}

/* Write random pages for ever, each of which has to hold what it did. */
static void *keep_writing(void *unused)
{
	const struct timespec interval = { .tv_nsec = WRITE_PAUSE_NS };
	uint64_t chance = mixed(self.chance);

	(void)unused;
	for (;;) {
		size_t page = below(&chance, BUFFER_PAGES);

		pthread_mutex_lock(&self.lock);
		check_page(page, "it was written beside a move");
		write_page(page);
		pthread_mutex_unlock(&self.lock);
		__atomic_add_fetch(&self.totals->writes, 1, __ATOMIC_RELAXED);
		nanosleep(&interval, NULL);
	}
	return NULL;
}

/* --- Memory --- */

/* A fault makes no folio that does not fit into its VMA: so cut that. */
static void map_fresh(size_t folio_bytes)
{
	if (mmap(self.at, BUFFER_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		die(EXIT_FAILED, "map: %s", strerror(errno));
	madvise(self.at, BUFFER_BYTES,
		folio_bytes > PAGE_BYTES ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	for (size_t at = 0; folio_bytes < HUGE_BYTES && at < BUFFER_BYTES;
	     at += 2 * folio_bytes)
		madvise(self.at + at, folio_bytes, MADV_DONTDUMP);
	write_all();
	madvise(self.at, BUFFER_BYTES, MADV_DODUMP);
}

static void find_place(void)
{
	char *at = mmap(NULL, BUFFER_BYTES + HUGE_BYTES, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		die(EXIT_FAILED, "room for a buffer: %s", strerror(errno));
	at += HUGE_BYTES - 1;
	self.at = at - (uintptr_t)at % HUGE_BYTES;
	for (size_t page = 0; page < BUFFER_PAGES; page++)
		self.addresses[page] = self.at + page * PAGE_BYTES;
}

/* --- What it does --- */

static size_t nr_pages_on(int node)
{
	size_t found = 0;

	if (syscall(SYS_move_pages, 0, BUFFER_PAGES, self.addresses, NULL,
		    self.status, 0))
		die(EXIT_FAILED, "ask for nodes: %s", strerror(errno));
	for (size_t page = 0; page < BUFFER_PAGES; page++)
		found += self.status[page] == node;
	return found;
}

/* Folios with a further reference stay in place, and are counted as such. */
static void move(int node, size_t folio_bytes)
{
	size_t each = folio_bytes / PAGE_BYTES, count = BUFFER_PAGES / each;
	unsigned long nodes = 1UL << node;
	size_t before = nr_pages_on(node), after;

	if (below(&self.chance, 3)) {
		void *addresses[BUFFER_PAGES];

		for (size_t i = 0; i < count; i++) {
			addresses[i] = self.at + i * folio_bytes;
			self.targets[i] = node;
		}
		syscall(SYS_move_pages, 0, count, addresses, self.targets,
			self.status, MPOL_MF_MOVE_ALL);
	} else {
		syscall(SYS_mbind, self.at, BUFFER_BYTES, MPOL_BIND, &nodes,
			NR_BITS, MPOL_MF_MOVE_ALL);
		syscall(SYS_mbind, self.at, BUFFER_BYTES, MPOL_DEFAULT, NULL, 0,
			0);
	}
	after = nr_pages_on(node);
	if (after > before)
		__atomic_add_fetch(&self.totals->bytes,
				   (after - before) * PAGE_BYTES,
				   __ATOMIC_RELAXED);
	__atomic_add_fetch(&self.totals->moves, 1, __ATOMIC_RELAXED);
}

/* A child that sees what we have, and writes some of it for itself. */
static pid_t fork_reader(void)
{
	pid_t child;

	pthread_mutex_lock(&self.lock);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		check_all("fork()");
		for (int i = 0; i < 64; i++)
			write_page(below(&self.chance, BUFFER_PAGES));
		check_all("a child's writes");
		_exit(EXIT_SUCCESS);
	}
	pthread_mutex_unlock(&self.lock);
	if (child < 0)
		die(EXIT_FAILED, "fork: %s", strerror(errno));
	__atomic_add_fetch(&self.totals->forks, 1, __ATOMIC_RELAXED);
	return child;
}

static void join(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		die(EXIT_FAILED, "a child is lost: %s", strerror(errno));
	if (status)
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED);
}

/* Give some memory back; what comes next is a fault, and a folio as it likes. */
static void drop_some(void)
{
	size_t first = below(&self.chance, BUFFER_PAGES);
	size_t count = 1 + below(&self.chance, BUFFER_PAGES - first);

	madvise(self.at + first * PAGE_BYTES, count * PAGE_BYTES,
		MADV_DONTNEED);
	for (size_t page = first; page < first + count; page++)
		write_page(page);
}

static void run_mapping(size_t folio_bytes)
{
	bool node;

	pthread_mutex_lock(&self.lock);
	map_fresh(folio_bytes);
	pthread_mutex_unlock(&self.lock);
	node = nr_pages_on(0) > BUFFER_PAGES / 2;
	for (int i = 0; i < MOVES_EACH; i++) {
		pid_t child = below(&self.chance, 4) ? 0 : fork_reader();

		move(node, folio_bytes);
		node = !node;
		pthread_mutex_lock(&self.lock);
		check_all("a move");
		if (!below(&self.chance, 8))
			drop_some();
		else
			write_all();
		pthread_mutex_unlock(&self.lock);
		if (child)
			join(child);
	}
}

_Noreturn void work(unsigned long number, uint64_t seed, struct totals *totals)
{
	size_t nr_sizes = sizeof(sizes) / sizeof(sizes[0]);
	pthread_t writer;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	self.number = number;
	self.chance = mixed(seed ^ mixed(number));
	self.totals = totals;
	pthread_mutex_init(&self.lock, NULL);
	for (size_t i = 0; i < NR_BYTES_WORDS; i++)
		bytes[i] = mixed(self.chance + i);
	find_place();
	map_fresh(PAGE_BYTES);
	if (pthread_create(&writer, NULL, keep_writing, NULL))
		die(EXIT_FAILED, "no thread");
	for (;;)
		run_mapping(sizes[below(&self.chance, nr_sizes)]);
}
