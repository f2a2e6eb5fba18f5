// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long a parent's first write to a page takes during the second after fork(), while the child
 * reads all memory as one that saves it does: cc -O2 snapshot.c && ./a.out MIB ROUNDS
 *
 * A line per round and per kind of page: what fork() took in milliseconds, how many pages were
 * written, and of the writes the median, the 99th percentile and the longest in microseconds.
 * Pages are drawn at random, and each is written once. Kinds take turns.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES 4096ul
#define HUGE_BYTES (2ul << 20)
#define SECOND_NS 1000000000ull

static unsigned long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void give_up(const char *what)
{
	fprintf(stderr, "snapshot: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int by_size(const void *one, const void *other)
{
	unsigned int first = *(const unsigned int *)one, second = *(const unsigned int *)other;

	return (first > second) - (first < second);
}

/* How much of this process is in huge pages. */
static unsigned long anonymous_huge_bytes(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	unsigned long kib = 0;
	char line[128];

	if (!file)
		give_up("/proc/self/smaps_rollup");
	while (fgets(line, sizeof(line), file) && sscanf(line, "AnonHugePages: %lu", &kib) != 1)
		;
	fclose(file);
	return kib << 10;
}

/* Memory in pages of one size, all of them written. */
static char *make_memory(unsigned long bytes, int is_huge)
{
	char *raw = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *memory = (char *)(((unsigned long)raw + HUGE_BYTES - 1) & -HUGE_BYTES);

	if (raw == MAP_FAILED)
		give_up("mmap");
	if (madvise(memory, bytes, is_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
		give_up("madvise");
	memset(memory, 1, bytes);
	if (is_huge && anonymous_huge_bytes() < bytes) {
		fprintf(stderr, "snapshot: not all of it is in huge pages; free more memory\n");
		exit(3);
	}
	return memory;
}

/* Reads all memory again and again, as a child that saves it, until it is killed. */
static void save(const char *memory, unsigned long bytes)
{
	unsigned long at;

	for (;;)
		for (at = 0; at < bytes; at += 64)
			asm volatile("" : : "r" (memory[at]));
}

static unsigned int *order_of_pages(unsigned long nr)
{
	unsigned int *pages = malloc(nr * sizeof(*pages)), swap;
	unsigned long i, other;

	if (!pages)
		give_up("malloc");
	for (i = 0; i < nr; i++)
		pages[i] = i;
	for (i = nr - 1; i; i--) {
		other = random() % (i + 1);
		swap = pages[i];
		pages[i] = pages[other];
		pages[other] = swap;
	}
	return pages;
}

static void measure(unsigned long bytes, int is_huge)
{
	unsigned long nr = bytes / PAGE_BYTES, i;
	unsigned int *pages = order_of_pages(nr), *took = malloc(nr * sizeof(*took));
	char *memory = make_memory(bytes, is_huge);
	unsigned long long before = now_ns(), start, end;
	pid_t child = fork();

	if (child < 0 || !took)
		give_up("fork");
	if (!child)
		save(memory, bytes);
	start = now_ns();
	for (i = 0, end = start; i < nr && end - start < SECOND_NS; i++) {
		unsigned long long at = now_ns();

		memory[pages[i] * PAGE_BYTES] = 2;
		end = now_ns();
		took[i] = end - at;
	}
	kill(child, 9);
	waitpid(child, NULL, 0);
	qsort(took, i, sizeof(*took), by_size);
	printf("%s fork_ms %.2f pages %lu median_us %.2f p99_us %.2f longest_us %.1f\n",
	       is_huge ? "2m" : "4k", (start - before) / 1e6, i, took[i / 2] / 1e3,
	       took[i * 99 / 100] / 1e3, took[i - 1] / 1e3);
	munmap(memory, bytes);
	free(pages);
	free(took);
}

int main(int argc, char **argv)
{
	unsigned long mib = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long rounds = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (!mib || mib % 2 || !rounds) {
		fprintf(stderr, "usage: snapshot MIB ROUNDS; MIB is even\n");
		return 2;
	}
	while (rounds--) {
		measure(mib << 20, 0);
		measure(mib << 20, 1);
	}
	return 0;
}
