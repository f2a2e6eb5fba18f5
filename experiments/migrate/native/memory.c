// SPDX-License-Identifier: GPL-2.0-only
/* Where frames, descriptors and tables lie, and what the caches have of them. */
#include "contents.h"
#include "launch.h"
#include "memory.h"
#include "migrate.h"
#include "program.h"

#define SMALL_BYTES 4096UL
#define NR_UPPER_TABLES 16	/* of one address space, above those of entries */
/* dcbm tries each channel with a page to copy and one to copy to. */
#define NR_TRIAL_PAGES (2 * OFFLOAD_MOST_CHANNELS)

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

static void map(const unsigned char *start, size_t bytes)
{
	launch_map((uintptr_t)start, bytes, 0);
}

void memory_map(size_t nr_pages, size_t nr_tables)
{
	map(memory_descriptor(MIGRATE_TABLE_PFN),
	    (MIGRATE_SRC_PFN - MIGRATE_TABLE_PFN + nr_pages) * DESCRIPTOR_BYTES);
	map(memory_descriptor(MIGRATE_DST_PFN), nr_pages * DESCRIPTOR_BYTES);
	map(memory_contents(MIGRATE_TABLE_PFN), (nr_tables + NR_TRIAL_PAGES) * PAGE_BYTES);
	map(memory_contents(MIGRATE_SRC_PFN), nr_pages * PAGE_BYTES);
	map(memory_contents(MIGRATE_DST_PFN), nr_pages * PAGE_BYTES);
}
