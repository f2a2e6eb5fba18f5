// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages of two memory cgroups and two nodes, in runs that change within a page table, are
 * unmapped, discarded and lost by an exit; what memory.numa_stat says of each has to change by
 * as many. Prints
 *
 *   anon_checks=N anon_wrong=N
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUPS 2
#define NODES 2
#define NR_PAGES 3000
#define PAGE 4096L
#define MPOL_BIND 2
/* The program has pages of its own: a stack that fork() shared and that is written again, say. */
#define OWN_PAGES 4

struct counts {
	long of[GROUPS][NODES];
};

static unsigned int nr_checks, nr_wrong;

static void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static void say(const char *path, const char *word)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, word, strlen(word)) < 0)
		die(path);
	close(fd);
}

static void enter(int group)
{
	char path[64];

	snprintf(path, sizeof(path), "/cg/%d/cgroup.procs", group);
	say(path, "0");
}

/* Runs of 3 pages of a cgroup, and of 5 of a node. */
static int group_of(int page)
{
	return page / 3 % GROUPS;
}

static int node_of(int page)
{
	return page / 5 % NODES;
}

/*
 * Pages, by cgroup and node. A reader does not get up to 64 changes for each CPU: they are added
 * up every two seconds.
 */
static void read_counts(struct counts *found)
{
	char path[64], line[256];
	int group;

	sleep(3);
	for (group = 0; group < GROUPS; group++) {
		FILE *file;

		snprintf(path, sizeof(path), "/cg/%d/memory.numa_stat", group);
		file = fopen(path, "r");
		if (!file)
			die(path);
		while (fgets(line, sizeof(line), file))
			if (sscanf(line, "anon N0=%ld N1=%ld", &found->of[group][0],
				   &found->of[group][1]) == NODES)
				break;
		fclose(file);
		found->of[group][0] /= PAGE;
		found->of[group][1] /= PAGE;
	}
}

static void check(const char *when, const struct counts *before, const struct counts *expected)
{
	struct counts now;
	int group, node;

	read_counts(&now);
	for (group = 0; group < GROUPS; group++)
		for (node = 0; node < NODES; node++) {
			long change = now.of[group][node] - before->of[group][node];
			long wanted = expected->of[group][node];

			nr_checks++;
			if (labs(change - wanted) <= OWN_PAGES)
				continue;
			nr_wrong++;
			printf("# %s: cgroup %d, node %d: %ld pages, not %ld\n", when,
			       group, node, change, wanted);
		}
}

static void fault(char *pages)
{
	int page;

	for (page = 0; page < NR_PAGES; page++) {
		unsigned long nodes = 1UL << node_of(page);

		if (syscall(SYS_set_mempolicy, MPOL_BIND, &nodes, 8 * sizeof(nodes)))
			die("set_mempolicy");
		enter(group_of(page));
		pages[page * PAGE] = 1;
	}
	syscall(SYS_set_mempolicy, 0, NULL, 0);
	enter(0);
}

/* What goes with these pages. */
static void less(struct counts *change, int first, int end)
{
	int page;

	memset(change, 0, sizeof(*change));
	for (page = first; page < end; page++)
		change->of[group_of(page)][node_of(page)]--;
}

int main(void)
{
	static const struct counts none;
	struct counts before, change;
	char *pages;
	pid_t child;

	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/cg", 0755);
	if (mount("none", "/cg", "cgroup2", 0, NULL))
		die("cgroup2");
	say("/cg/cgroup.subtree_control", "+memory");
	mkdir("/cg/0", 0755);
	mkdir("/cg/1", 0755);

	pages = mmap(NULL, NR_PAGES * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		die("mmap");
	madvise(pages, NR_PAGES * PAGE, MADV_NOHUGEPAGE);
	fault(pages);

	/* A child that leaves loses what it wrote, and no page of ours. */
	read_counts(&before);
	child = fork();
	if (!child) {
		fault(pages);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	check("exit of a child", &before, &none);

	read_counts(&before);
	less(&change, 7, NR_PAGES / 2);
	madvise(pages + 7 * PAGE, (NR_PAGES / 2 - 7) * PAGE, MADV_DONTNEED);
	check("MADV_DONTNEED", &before, &change);

	read_counts(&before);
	less(&change, NR_PAGES / 2, NR_PAGES);
	munmap(pages + NR_PAGES / 2 * PAGE, NR_PAGES / 2 * PAGE);
	check("munmap()", &before, &change);

	printf("anon_checks=%u anon_wrong=%u\n", nr_checks, nr_wrong);
	return 0;
}
