// SPDX-License-Identifier: GPL-2.0-only
/*
 * Take blocks of memory off line and on line again, and memory from a CMA area
 * and give it back, while another process has memory compacted. Prints how that
 * went:
 *
 *   offlined=N refused=N cma_taken=N cma_refused=N cma_whole=N
 *   compact_success=N wrong_words=N
 *
 * where cma_whole is 1 if all of the CMA area can be had once nobody else wants
 * memory. It ends with the first block or part that is refused. Code that
 * isolates pageblocks, for either use, looks for free pages in free lists and
 * on CPUs. The other process fills memory with base pages, gives every second
 * one back, and then wants huge pages, for which the kernel has to move what is
 * left.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096UL
#define HUGE_BYTES (2UL << 20)
#define THP "/sys/kernel/mm/transparent_hugepage/"
#define MEMORY "/sys/devices/system/memory"
#define CMA "/sys/kernel/debug/cma/reserved/"

#define NR_ROUNDS 12
#define PATIENCE_S 60		/* the kernel tries again until one is killed */
#define CMA_TAKEN_MIB 16
#define CMA_MIB 128		/* of the area */
#define MOST_BLOCKS 64
#define BASE_SHARE 70		/* per cent of what is free */
#define HUGE_SHARE 50		/* of what is free then */

static void fail(const char *path)
{
	printf("Bail out! %s: %s\n", path, strerror(errno));
	exit(1);
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int error = 0;

	if (fd < 0)
		fail(path);
	if (write(fd, text, strlen(text)) < 0)
		error = errno;
	close(fd);
	return error;
}

/* As put(), but EINTR if that does not come to an end. */
static int put_in_time(const char *path, const char *text)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		fail("fork");
	if (!child) {
		alarm(PATIENCE_S);
		_exit(put(path, text));
	}
	if (waitpid(child, &status, 0) < 0)
		fail("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* A line `NAME VALUE` of a file of /proc, whatever follows NAME at once. */
static unsigned long value_of(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	unsigned long value;
	char line[256];

	if (!file)
		fail(path);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)) &&
		    sscanf(line + strlen(name), "%lu", &value) == 1) {
			fclose(file);
			return value;
		}
	errno = 0;
	fail(name);
	return 0;
}

static char *map(size_t nr_bytes, int advice)
{
	char *all = mmap(NULL, nr_bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (all == MAP_FAILED)
		fail("mmap");
	all = (char *)(((uintptr_t)all + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
	madvise(all, nr_bytes, advice);
	return all;
}

/* One round: words that are not as they were written. */
static unsigned long want_huge_pages(void)
{
	size_t free_kib = value_of("/proc/meminfo", "MemFree:");
	size_t base = free_kib / 100 * BASE_SHARE * 1024 / HUGE_BYTES * HUGE_BYTES;
	char *small = map(base, MADV_NOHUGEPAGE), *large;
	unsigned long nr_wrong = 0;
	size_t huge;

	for (size_t at = 0; at < base; at += PAGE)
		*(size_t *)(small + at) = at + 1;
	for (size_t at = 0; at < base; at += 2 * PAGE)
		madvise(small + at, PAGE, MADV_DONTNEED);
	free_kib = value_of("/proc/meminfo", "MemFree:");
	huge = free_kib / 100 * HUGE_SHARE * 1024 / HUGE_BYTES * HUGE_BYTES;
	large = map(huge, MADV_HUGEPAGE);
	for (size_t at = 0; at < huge; at += HUGE_BYTES)
		large[at] = 1;
	for (size_t at = PAGE; at < base; at += 2 * PAGE)
		nr_wrong += *(size_t *)(small + at) != at + 1;
	munmap(large, huge);
	munmap(small, base);
	return nr_wrong;
}

static unsigned long number_in(const char *path, int base)
{
	FILE *file = fopen(path, "r");
	char line[64];

	if (!file || !fgets(line, sizeof(line), file))
		fail(path);
	fclose(file);
	return strtoul(line, NULL, base);
}

/* Memory of a CMA area does not go off line. */
static int has_cma(unsigned int number)
{
	size_t block = number_in(MEMORY "/block_size_bytes", 16);
	size_t first = number_in(CMA "base_pfn", 10) * PAGE;
	size_t end = first + number_in(CMA "count", 10) * PAGE;

	return number * block < end && first < (number + 1) * block;
}

static unsigned int movable_blocks(unsigned int *numbers)
{
	DIR *folder = opendir(MEMORY);
	struct dirent *entry;
	unsigned int nr = 0;

	if (!folder)
		fail(MEMORY);
	while ((entry = readdir(folder)) && nr < MOST_BLOCKS) {
		char path[300], line[64] = "";
		unsigned int number;
		FILE *file;

		if (sscanf(entry->d_name, "memory%u", &number) != 1)
			continue;
		snprintf(path, sizeof(path), MEMORY "/%s/valid_zones",
			 entry->d_name);
		file = fopen(path, "r");
		if (!file)
			fail(path);
		if (fgets(line, sizeof(line), file) &&
		    strstr(line, "Movable") && !has_cma(number))
			numbers[nr++] = number;
		fclose(file);
	}
	closedir(folder);
	return nr;
}

/* And put it on line again, if it went. */
static void take_off_line(unsigned int block, unsigned int *nr_off,
			  unsigned int *nr_refused)
{
	char path[96];
	int error;

	snprintf(path, sizeof(path), MEMORY "/memory%u/state", block);
	error = put_in_time(path, "offline");
	if (!error) {
		if (put(path, "online_movable"))
			fail(path);
		++*nr_off;
	} else if (error != EINVAL) {	/* as of a block with a hole in it */
		printf("# memory%u: %s\n", block, strerror(error));
		++*nr_refused;
	}
}

/* Whether so much could be had, in one piece. Is given back. */
static int take_from_cma(unsigned int mib)
{
	char nr_pages[16];
	int error;

	snprintf(nr_pages, sizeof(nr_pages), "%lu", (mib << 20) / PAGE);
	error = put_in_time(CMA "alloc", nr_pages);
	if (error && error != ENOMEM && error != EINTR) {
		errno = error;
		fail(CMA "alloc");
	}
	if (!error && put(CMA "free", nr_pages))
		fail(CMA "free");
	return !error;
}

int main(void)
{
	unsigned int blocks[MOST_BLOCKS], nr_blocks, nr_off = 0, nr_refused = 0;
	unsigned int nr_taken = 0, nr_rounds = 0;
	unsigned long before = value_of("/proc/vmstat", "compact_success");
	unsigned long *nr_wrong = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	put(THP "enabled", "madvise");
	put(THP "defrag", "always");
	nr_blocks = movable_blocks(blocks);
	if (!nr_blocks || nr_wrong == MAP_FAILED)
		fail("no movable block");
	child = fork();
	if (child < 0)
		fail("fork");
	while (!child)
		*nr_wrong += want_huge_pages();
	while (value_of("/proc/vmstat", "compact_success") == before)
		usleep(100000);
	while (nr_rounds < NR_ROUNDS && !nr_refused && nr_taken == nr_rounds) {
		take_off_line(blocks[nr_rounds % nr_blocks], &nr_off,
			      &nr_refused);
		nr_taken += take_from_cma(CMA_TAKEN_MIB);
		nr_rounds++;
		usleep(100000);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("offlined=%u refused=%u cma_taken=%u cma_refused=%u cma_whole=%d ",
	       nr_off, nr_refused, nr_taken, nr_rounds - nr_taken,
	       take_from_cma(CMA_MIB));
	printf("compact_success=%lu wrong_words=%lu\n",
	       value_of("/proc/vmstat", "compact_success") - before, *nr_wrong);
	return 0;
}
