// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the compact experiment: frames that are free and in no list, while
 * somebody isolates pageblocks. Whoever does looks for free pages in the lists
 * of the zone and of CPUs, and finds these in neither: mm/page_isolation.c.
 */
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include "internal.h"
#include "kernel.h"
#include "compact_kernel.h"

static struct {
	bool *was_taken;
	unsigned long room, nr_pages, nr_copies, most;
} parked;

bool compact_looks;

void compact_isolate(unsigned long nr_pages, unsigned long nr_copies)
{
	unsigned long i;

	if (nr_pages > parked.room) {
		host_free(parked.was_taken);
		parked.was_taken = host_alloc(nr_pages * sizeof(*parked.was_taken));
		parked.room = nr_pages;
	}
	parked.nr_pages = nr_pages;
	parked.nr_copies = nr_copies;
	parked.most = 0;
	for (i = 0; i < nr_pages; i++)
		parked.was_taken[i] = page_count(pfn_to_page(NODE_PFN + i));
	compact_looks = true;
}

unsigned long compact_stop_isolating(void)
{
	if (!compact_looks)
		return 0;
	if (!parked.nr_copies)
		host_zone()->nr_isolate_pageblock--;
	compact_looks = false;
	return parked.most;
}

static bool is_captured(const struct page *page)
{
	const struct capture_control *capc = current->capture_control;

	return capc && capc->page && page >= capc->page &&
	       page < capc->page + COMPACT_HUGE_PAGES;
}

/* What moves is of order 0, and so is what is freed. */
static unsigned long nr_on_cpus(void)
{
	unsigned long nr = 0;
	struct page *page;
	int cpu, i;

	for_each_possible_cpu(cpu) {
		struct per_cpu_pages *pcp = per_cpu_ptr(host_zone()->per_cpu_pageset, cpu);

		for (i = 0; i < MIGRATE_PCPTYPES; i++)
			list_for_each_entry(page, &pcp->lists[i], pcp_list)
				nr += parked.was_taken[page_to_pfn(page) - NODE_PFN];
	}
	return nr;
}

/*
 * Frames that compaction has isolated as targets are in no list, and are meant
 * to be in none. They were free before: only those count that were taken then,
 * so no request may come back to what it has freed.
 */
void compact_look(void)
{
	unsigned long nr = 0, i;

	if (parked.nr_copies) {
		/* What was freed until now is found by the time the next is. */
		if (!--parked.nr_copies)
			host_zone()->nr_isolate_pageblock++;
		return;
	}
	for (i = 0; i < parked.nr_pages; i++) {
		const struct page *page = pfn_to_page(NODE_PFN + i);

		if (PageBuddy(page))
			i += (1UL << page_private(page)) - 1;
		else
			nr += parked.was_taken[i] && !page_count(page) && !is_captured(page);
	}
	parked.most = max(parked.most, nr - nr_on_cpus());
}
