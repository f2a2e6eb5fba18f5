// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fork, and have the child exit, while the tracepoints of changes of a page's reference count
 * are enabled. How many events there were of the pages that parent and child share:
 *
 *   shared_pages=N ref_mod=N ref_mod_and_test=N
 *
 * The child touches none of them: fork() takes a reference of each, and its exit drops it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACING		"/sys/kernel/debug/tracing/"
#define EVENTS		TRACING "events/page_ref/"
#define NR_PAGES	512
#define PAGE		4096L
/* of an entry of pagemap */
#define PFN_MASK	((1UL << 55) - 1)

static void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static void say(const char *path, const char *word)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	if (fd < 0 || write(fd, word, strlen(word)) < 0)
		die(path);
	close(fd);
}

static void trace(const char *word)
{
	say(EVENTS "page_ref_mod/enable", word);
	say(EVENTS "page_ref_mod_and_test/enable", word);
}

static void find_frames(const char *pages, unsigned long *frames)
{
	int fd = open("/proc/self/pagemap", O_RDONLY), page;

	if (fd < 0 || pread(fd, frames, NR_PAGES * sizeof(*frames),
			    (unsigned long)pages / PAGE * sizeof(*frames)) !=
			    NR_PAGES * (ssize_t)sizeof(*frames))
		die("pagemap");
	close(fd);
	for (page = 0; page < NR_PAGES; page++)
		frames[page] &= PFN_MASK;
	if (!frames[0]) {
		errno = EPERM;
		die("pagemap");
	}
}

static int is_ours(const unsigned long *frames, unsigned long frame)
{
	int page;

	for (page = 0; page < NR_PAGES; page++)
		if (frames[page] == frame)
			return 1;
	return 0;
}

static void count_events(const unsigned long *frames)
{
	unsigned int nr_mod = 0, nr_mod_and_test = 0;
	FILE *file = fopen(TRACING "trace", "r");
	char line[512];

	if (!file)
		die("trace");
	while (fgets(line, sizeof(line), file)) {
		const char *pfn = strstr(line, " pfn=0x");

		if (!pfn || !is_ours(frames, strtoul(pfn + 5, NULL, 16)))
			continue;
		nr_mod += !!strstr(line, " page_ref_mod:");
		nr_mod_and_test += !!strstr(line, " page_ref_mod_and_test:");
	}
	fclose(file);
	printf("shared_pages=%d ref_mod=%u ref_mod_and_test=%u\n", NR_PAGES, nr_mod,
	       nr_mod_and_test);
}

static char *mapped(long nr)
{
	char *pages = mmap(NULL, nr * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long page;

	if (pages == MAP_FAILED || madvise(pages, nr * PAGE, MADV_NOHUGEPAGE))
		die("mmap");
	for (page = 0; page < nr; page++)
		pages[page * PAGE] = 1;
	return pages;
}

int main(void)
{
	unsigned long frames[NR_PAGES];
	cpu_set_t one;
	char *pages;
	pid_t child;
	int status;

	/* The last pages are in a batch of the CPU, with a reference each, until it is drained. */
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		die("sched_setaffinity");
	pages = mapped(NR_PAGES);
	if (madvise(mapped(1), PAGE, MADV_COLD))
		die("madvise");
	find_frames(pages, frames);

	say(TRACING "buffer_size_kb", "16384");
	trace("1");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child)
		_exit(0);
	if (waitpid(child, &status, 0) != child || status)
		die("child");
	trace("0");
	count_events(frames);
	return 0;
}
