// SPDX-License-Identifier: GPL-2.0-only
/*
 * Have several CPUs do something. Prints how many last-level caches there are,
 * of how many pools unbound workers were at work meanwhile, and how many works
 * of a memory map were queued, in a kernel that traces that:
 *
 *   last_level_caches=N pools_at_work=N works_queued=N limits_ignored=N
 *
 * A pool of unbound workers is of one last-level cache, and its number is in
 * the workers' names, kworker/uPOOL:WORKER. With mtcopy what is to be done is a
 * migration from node to node and back, without it the memory map of a device,
 * by kernel/modules/memremap. limits_ignored is how many numbers of threads
 * mtcopy takes of those that it should not.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIND "/sys/kernel/debug/ream-memremap/bind"
#define MTCOPY "/sys/module/mtcopy"
#define NR_THREADS MTCOPY "/parameters/nr_threads"
#define TRACING "/sys/kernel/debug/tracing/"
#define QUEUED TRACING "events/workqueue/workqueue_queue_work/enable"
#define THP "/sys/kernel/mm/transparent_hugepage/enabled"
#define HUGE_BYTES (2UL << 20)
#define MOVED_BYTES (256UL << 20)
#define NR_MOVES 8
#define MOST_POOLS 1024
#define NAME "Name:\tkworker/u"
#define SWITCHES "voluntary_ctxt_switches:"
#define MOST_PIDS 65536
#define MOST_CPUS 256
#define LINE 512

static void fail(const char *path)
{
	printf("Bail out! %s: %s\n", path, strerror(errno));
	exit(1);
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file))
		fail(path);
}

/* How many of these texts a file takes. */
static unsigned int nr_taken(const char *path, const char *const *texts)
{
	unsigned int nr = 0;

	for (; *texts; texts++) {
		FILE *file = fopen(path, "w");

		if (!file)
			fail(path);
		nr += fputs(*texts, file) >= 0;
		nr -= !!fclose(file);
	}
	return nr;
}

static int get(const char *path, char *line)
{
	FILE *file = fopen(path, "r");
	int ok;

	if (!file)
		return 0;
	ok = !!fgets(line, LINE, file);
	fclose(file);
	return ok;
}

static struct worker {
	unsigned int pool;
	long switches;
} workers[MOST_PIDS];

/* How often each worker has gone to sleep again: once at least for a work. */
static void add_switches(int sign)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	if (!proc)
		fail("/proc");
	while ((entry = readdir(proc))) {
		unsigned int pool, pid;
		char path[300], line[LINE];
		long switches;
		FILE *file;

		/* Not a number: 0, as which there is no process. */
		pid = strtoul(entry->d_name, NULL, 10);
		if (!pid || pid >= MOST_PIDS)
			continue;
		snprintf(path, sizeof(path), "/proc/%u/status", pid);
		file = fopen(path, "r");
		if (!file)
			continue;
		pool = MOST_POOLS;
		while (fgets(line, sizeof(line), file)) {
			if (!strncmp(line, NAME, strlen(NAME)))
				pool = strtoul(line + strlen(NAME), NULL, 10);
			if (pool >= MOST_POOLS)
				break;
			if (strncmp(line, SWITCHES, strlen(SWITCHES)))
				continue;
			switches = strtol(line + strlen(SWITCHES), NULL, 10);
			workers[pid].pool = pool;
			workers[pid].switches += sign * switches;
		}
		fclose(file);
	}
	closedir(proc);
}

static unsigned int last_level_caches(void)
{
	static char seen[MOST_CPUS][LINE];
	unsigned int nr = 0;

	for (unsigned int cpu = 0; cpu < MOST_CPUS; cpu++) {
		char path[96], line[LINE];
		unsigned int i;

		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%u/cache/index3/shared_cpu_list",
			 cpu);
		if (!get(path, line))
			break;
		for (i = 0; i < nr && strcmp(seen[i], line); i++)
			;
		if (i == nr)
			memcpy(seen[nr++], line, LINE);
	}
	return nr;
}

/* How many works of helpers of a memory map were queued; 0 where nothing is traced. */
static unsigned int works_queued(void)
{
	FILE *file = fopen(TRACING "trace", "r");
	unsigned int nr = 0;
	char line[LINE];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		nr += !!strstr(line, "function=zone_device_help");
	fclose(file);
	return nr;
}

static void move_memory(void)
{
	const unsigned long nodes[] = { 1, 2 };
	cpu_set_t first;
	char *memory = mmap(NULL, MOVED_BYTES + HUGE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	/* Code that begins on the caller's CPU begins there every time. */
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof(first), &first))
		fail("sched_setaffinity");
	put(THP, "madvise");
	madvise(memory, MOVED_BYTES + HUGE_BYTES, MADV_HUGEPAGE);
	memset(memory, 1, MOVED_BYTES + HUGE_BYTES);
	for (unsigned int i = 0; i < NR_MOVES; i++)
		if (syscall(SYS_migrate_pages, 0, 3, &nodes[i % 2],
			    &nodes[(i + 1) % 2]) < 0)
			fail("migrate_pages");
}

int main(void)
{
	static const char *const beyond[] = { "0", "33", NULL };
	static char at_work[MOST_POOLS];
	unsigned int nr_pools = 0, nr_ignored = 0;

	if (!access(QUEUED, F_OK))
		put(QUEUED, "1");
	add_switches(-1);
	if (access(MTCOPY, F_OK))
		put(BIND, "1");
	else
		move_memory();
	add_switches(1);
	if (!access(MTCOPY, F_OK))
		nr_ignored = nr_taken(NR_THREADS, beyond);
	for (const struct worker *one = workers; one < workers + MOST_PIDS; one++) {
		/* A worker that is gone has a negative difference. */
		if (one->switches <= 0)
			continue;
		nr_pools += !at_work[one->pool];
		at_work[one->pool] = 1;
	}
	printf("last_level_caches=%u pools_at_work=%u works_queued=%u ",
	       last_level_caches(), nr_pools, works_queued());
	printf("limits_ignored=%u\n", nr_ignored);
	return 0;
}
