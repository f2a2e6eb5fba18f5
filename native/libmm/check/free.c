// SPDX-License-Identifier: GPL-2.0-only
/* Check free memory: no frame is on two lists, and the lists are as long as counted. */
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/page-isolation.h>
#include "census.h"
#include "hosted.h"
#include "trees.h"

static void take(unsigned long pfn, unsigned int order, enum frame_use use)
{
	unsigned long i;

	for (i = 0; i < 1UL << order; i++) {
		u8 *is = &census.use[pfn - LIBMM_FIRST_PFN + i];

		if (*is == IS_TABLE)
			wrong("frame %#lx is free and a page table", pfn + i);
		else if (*is)
			wrong("frame %#lx is free twice", pfn + i);
		*is = use;
	}
}

static void check_block(struct page *page, unsigned int order, int type)
{
	unsigned long pfn = page_to_pfn(page);
	int of_block = get_pageblock_migratetype(page);

	if (!PageBuddy(page) || buddy_order(page) != order)
		wrong("frame %#lx is in the list of blocks of order %u, and no such block",
		      pfn, order);
	if (pfn & ((1UL << order) - 1))
		wrong("frame %#lx begins a free block of order %u, and is not aligned",
		      pfn, order);
	/* A free block is on the list of its pageblock's migratetype, even after a fallback. */
	if (of_block != type)
		wrong("frame %#lx is in the free list of type %d, and its block is of type %d",
		      pfn, type, of_block);
	take(pfn, order, IN_BUDDY);
}

/* Return: free pages in the buddy lists. @nr_cma is set to those in CMA pageblocks. */
static long walk_buddy(struct zone *zone, long *nr_cma)
{
	long nr_pages = 0;
	int order, type;

	for (order = 0; order < NR_PAGE_ORDERS; order++) {
		struct free_area *area = &zone->free_area[order];
		unsigned long nr = 0;

		for (type = 0; type < MIGRATE_TYPES; type++) {
			struct page *page;

			list_for_each_entry(page, &area->free_list[type], buddy_list) {
				check_block(page, order, type);
				nr++;
				*nr_cma += is_migrate_cma(type) ? 1L << order : 0;
			}
		}
		if (area->nr_free != nr)
			wrong("nr_free of order %d is %lu, and its lists have %lu blocks",
			      order, area->nr_free, nr);
		nr_pages += nr << order;
	}
	return nr_pages;
}

static void walk_per_cpu(struct zone *zone, int cpu)
{
	struct per_cpu_pages *pcp = per_cpu_ptr(zone->per_cpu_pageset, cpu);
	long nr_pages = 0;
	int list;

	for (list = 0; list < NR_PCP_LISTS; list++) {
		int order = list < NR_LOWORDER_PCP_LISTS ? list / MIGRATE_PCPTYPES :
							   HPAGE_PMD_ORDER;
		struct page *page;

		list_for_each_entry(page, &pcp->lists[list], pcp_list) {
			take(page_to_pfn(page), order, IN_PCP);
			nr_pages += 1L << order;
			/* The next owner, such as swap, may take a stale one for its own. */
			if (page_private(page))
				wrong("free frame %#lx has a private word, %#lx",
				      page_to_pfn(page), page_private(page));
		}
	}
	if (pcp->count != nr_pages)
		wrong("CPU %d's list of free pages is counted as %d pages, and has %ld",
		      cpu, pcp->count, nr_pages);
}

void check_free_memory(void)
{
	struct zone *zone;
	int cpu;

	for_each_populated_zone(zone) {
		long nr_cma = 0, nr_pages = walk_buddy(zone, &nr_cma);

		if (zone_page_state_snapshot(zone, NR_FREE_PAGES) != nr_pages)
			wrong("NR_FREE_PAGES of node %d is %lu, and lists have %ld",
			      zone_to_nid(zone), zone_page_state_snapshot(zone, NR_FREE_PAGES),
			      nr_pages);
		if (zone_page_state_snapshot(zone, NR_FREE_CMA_PAGES) != nr_cma)
			wrong("NR_FREE_CMA_PAGES of node %d is %lu, and lists have %ld",
			      zone_to_nid(zone), zone_page_state_snapshot(zone, NR_FREE_CMA_PAGES),
			      nr_cma);
		for_each_online_cpu(cpu)
			walk_per_cpu(zone, cpu);
	}
}
