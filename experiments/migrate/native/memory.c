// SPDX-License-Identifier: GPL-2.0-only
/* Where frames, descriptors and tables lie, and what the caches have of them. */
#include "contents.h"
#include "launch.h"
#include "memory.h"
#include "migrate.h"
#include "program.h"

#define SMALL_BYTES 4096UL
#define NR_UPPER_TABLES 16	/* of one address space, above those of entries */

static struct {
	struct arena descriptors[2];
	struct arena contents[3];
} memory;

unsigned char *memory_descriptor(unsigned long pfn)
{
	return (unsigned char *)MIGRATE_MAP_ADDRESS +
	       (pfn - MIGRATE_TABLE_PFN) * DESCRIPTOR_BYTES;
}

unsigned char *memory_contents(unsigned long pfn)
{
	return (unsigned char *)MIGRATE_RAM_ADDRESS + (pfn - MIGRATE_TABLE_PFN) * PAGE_BYTES;
}

size_t memory_nr_tables(size_t nr_pmds, unsigned int nr_mappings)
{
	return (nr_pmds + nr_pmds / 512 + NR_UPPER_TABLES) * nr_mappings;
}

void memory_map_small(void)
{
	launch_map_small(MIGRATE_ANON_VMA_ADDRESS, SMALL_BYTES);
	launch_map_small(MIGRATE_LIST_ADDRESS, MIGRATE_MOST_LISTS * MIGRATE_LIST_BYTES);
	launch_map_small(MIGRATE_NODE_ADDRESS, MIGRATE_NR_NODES * MIGRATE_NODE_BYTES);
}

static struct arena map(const unsigned char *start, size_t bytes)
{
	return arena_map((uintptr_t)start, bytes, launch.nr_cpus);
}

void memory_map(size_t nr_pages, size_t nr_tables)
{
	memory.descriptors[0] = map(memory_descriptor(MIGRATE_TABLE_PFN),
				    (MIGRATE_SRC_PFN - MIGRATE_TABLE_PFN + nr_pages) *
				    DESCRIPTOR_BYTES);
	memory.descriptors[1] = map(memory_descriptor(MIGRATE_DST_PFN),
				    nr_pages * DESCRIPTOR_BYTES);
	memory.contents[0] = map(memory_contents(MIGRATE_TABLE_PFN), nr_tables * PAGE_BYTES);
	memory.contents[1] = map(memory_contents(MIGRATE_SRC_PFN), nr_pages * PAGE_BYTES);
	memory.contents[2] = map(memory_contents(MIGRATE_DST_PFN), nr_pages * PAGE_BYTES);
}

double memory_huge_ratio(void)
{
	size_t huge = 0, all = 0;

	for (unsigned int i = 0; i < 2; i++) {
		huge += arena_huge_bytes(&memory.descriptors[i]);
		all += memory.descriptors[i].bytes;
	}
	for (unsigned int i = 0; i < 3; i++) {
		huge += arena_huge_bytes(&memory.contents[i]);
		all += memory.contents[i].bytes;
	}
	return (double)huge / (double)all;
}
