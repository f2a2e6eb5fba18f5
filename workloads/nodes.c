// SPDX-License-Identifier: GPL-2.0-only
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "nodes.h"
#include "program.h"

#define NODES "/sys/devices/system/node"
#define TIERS "/sys/devices/virtual/memory_tiering"
#define MOST_TIERS 1024	/* their numbers are distances over a chunk of 128 */
#define PATH_ROOM 128

/* The nodes of a list such as "0-1,4", a bit each; those beyond are left out. */
static uint64_t mask_of(const char *list)
{
	uint64_t mask = 0;

	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < MOST_NODES; first++)
			mask |= 1ULL << first;
		list = *end == ',' ? end + 1 : end;
	}
	return mask;
}

void nodes_require(unsigned int from, unsigned int to)
{
	const char *list = first_line(NODES "/has_memory");
	uint64_t mask;

	if (!list)
		die(EXIT_CANNOT_RUN,
		    "this kernel has no NUMA nodes; move_pages(2) needs two");
	mask = mask_of(list);
	if (!(mask & (mask - 1)))
		die(EXIT_CANNOT_RUN,
		    "this machine has one NUMA node (node %s); move_pages(2) needs two",
		    list);
	if (!(mask >> from & 1) || !(mask >> to & 1))
		die(EXIT_CANNOT_RUN,
		    "--from %u --to %u: nodes with memory are %s", from, to,
		    list);
}

int node_cpu(unsigned int node)
{
	char path[PATH_ROOM];
	const char *list;

	snprintf(path, sizeof(path), NODES "/node%u/cpulist", node);
	list = first_line(path);
	return list && *list ? atoi(list) : -1;
}

size_t node_free_bytes(unsigned int node)
{
	char path[PATH_ROOM], line[PATH_ROOM];
	unsigned long kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), NODES "/node%u/meminfo", node);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Node %*u MemFree: %lu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib * 1024;
}

size_t node_reserve_bytes(unsigned int node)
{
	FILE *file = fopen("/proc/zoneinfo", "re");
	unsigned int in_node = MOST_NODES;
	unsigned long nr_pages, all = 0;
	char line[PATH_ROOM];

	/* "Node 1, zone Normal", then what is of this zone. */
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Node %u, zone", &in_node) != 1 &&
		    in_node == node && sscanf(line, " high %lu", &nr_pages) == 1)
			all += nr_pages;
	}
	if (file)
		fclose(file);
	return all * sysconf(_SC_PAGESIZE);
}

static int tier_of(unsigned int node)
{
	for (int tier = 0; tier < MOST_TIERS; tier++) {
		char path[PATH_ROOM];
		const char *list;

		snprintf(path, sizeof(path), TIERS "/memory_tier%d/nodelist",
			 tier);
		list = first_line(path);
		if (list && mask_of(list) >> node & 1)
			return tier;
	}
	return -1;
}

bool node_is_lower(unsigned int low, unsigned int high)
{
	int below = tier_of(low), above = tier_of(high);

	return above >= 0 && below > above;
}
