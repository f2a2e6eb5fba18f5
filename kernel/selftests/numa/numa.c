// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "numa.h"
#include "numaif.h"

#define HAS_MEMORY "/sys/devices/system/node/has_memory"
#define MOST_NODES 64
#define TURN_NS 1000000

static struct bitmask all_nodes;
struct bitmask *numa_all_nodes_ptr = &all_nodes;

/* "0-1,3" */
int numa_available(void)
{
	FILE *file = fopen(HAS_MEMORY, "re");
	char line[256] = "", *part, *rest = line;

	if (!file)
		return -1;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	while ((part = strsep(&rest, ",\n"))) {
		char *end;
		unsigned long node = strtoul(part, &end, 10), last = node;

		if (end == part)
			continue;
		if (*end == '-')
			last = strtoul(end + 1, NULL, 10);
		for (; node <= last && node < MOST_NODES; node++)
			all_nodes.nodes |= 1UL << node;
	}
	return all_nodes.nodes ? 0 : -1;
}

int numa_num_task_cpus(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : CPU_COUNT(&cpus);
}

int numa_max_possible_node(void)
{
	return MOST_NODES - 1;
}

int numa_bitmask_isbitset(const struct bitmask *mask, unsigned int node)
{
	return node < MOST_NODES && mask->nodes >> node & 1;
}

/*
 * The test tries a hundred times, at once. Emulated CPUs take turns, so who
 * holds the page, and on another CPU would let go of it, gets none meanwhile.
 */
long move_pages(pid_t pid, unsigned long count, void **pages, const int *nodes,
		int *status, int flags)
{
	const struct timespec turn = { .tv_nsec = TURN_NS };
	long left = syscall(SYS_move_pages, pid, count, pages, nodes, status,
			    flags);

	if (left > 0)
		nanosleep(&turn, NULL);
	return left;
}
