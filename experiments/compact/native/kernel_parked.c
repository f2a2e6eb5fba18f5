// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the compact experiment: frames that are free and in no list. Code that
 * isolates pageblocks looks for free pages in the lists of the zone and of CPUs,
 * and finds these in neither: mm/page_isolation.c. Nor does code that disabled
 * the lists of CPUs: mm/memory-failure.c. Code that runs between two lines of a
 * task, such as the scheduler, must not touch what that task changes.
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
	unsigned long room, nr_pages, nr_copies, isolating, disabling, leaving, nr_looks, most;
} parked;

bool compact_looks;

void compact_begin_looking(const struct compact_request *request)
{
	unsigned long i;

	compact_looks = request->isolating || request->disabling || request->leaving;
	if (!compact_looks)
		return;
	if (request->nr_pages > parked.room) {
		host_free(parked.was_taken);
		parked.was_taken = host_alloc(request->nr_pages * sizeof(*parked.was_taken));
		parked.room = request->nr_pages;
	}
	parked.nr_pages = request->nr_pages;
	parked.isolating = request->isolating;
	parked.disabling = request->disabling;
	parked.leaving = request->leaving;
	parked.nr_copies = 0;
	parked.nr_looks = 0;
	parked.most = 0;
	for (i = 0; i < parked.nr_pages; i++)
		parked.was_taken[i] = page_count(pfn_to_page(NODE_PFN + i));
}

void compact_end_looking(struct compact_result *result)
{
	if (!compact_looks)
		return;
	if (parked.isolating && parked.nr_copies >= parked.isolating)
		host_zone()->nr_isolate_pageblock--;
	if (parked.disabling && parked.nr_copies >= parked.disabling)
		zone_pcp_enable(host_zone());
	compact_looks = false;
	result->nr_looks = parked.nr_looks;
	result->nr_parked = parked.most;
}

static bool is_captured(const struct page *page)
{
	const struct capture_control *capc = current->capture_control;

	return capc && capc->page && page >= capc->page &&
	       page < capc->page + COMPACT_HUGE_PAGES;
}

/* Pages that were taken, or one page only. What moves is of order 0, and so is what is freed. */
static unsigned long nr_on_cpus(const struct page *only)
{
	unsigned long nr = 0;
	struct page *page;
	int cpu, i;

	for_each_possible_cpu(cpu) {
		struct per_cpu_pages *pcp = per_cpu_ptr(host_zone()->per_cpu_pageset, cpu);

		for (i = 0; i < MIGRATE_PCPTYPES; i++)
			list_for_each_entry(page, &pcp->lists[i], pcp_list)
				nr += only ? page == only :
					     parked.was_taken[page_to_pfn(page) - NODE_PFN];
	}
	return nr;
}

/*
 * Frames that compaction has isolated as targets are in no list, and are meant
 * to be in none. They were free before: only those count that were taken then,
 * so no request may come back to what it has freed.
 */
static void look_everywhere(void)
{
	unsigned long nr = 0, i;

	for (i = 0; i < parked.nr_pages; i++) {
		const struct page *page = pfn_to_page(NODE_PFN + i);

		if (PageBuddy(page))
			i += (1UL << page_private(page)) - 1;
		else
			nr += parked.was_taken[i] && !page_count(page) && !is_captured(page);
	}
	parked.nr_looks++;
	parked.most = max(parked.most, nr - nr_on_cpus(NULL));
}

static bool is_listed(const struct page *page)
{
	unsigned long pfn = page_to_pfn(page);
	unsigned int order;

	for (order = 0; order < NR_PAGE_ORDERS; order++) {
		const struct page *head = pfn_to_page(pfn & ~((1UL << order) - 1));

		if (PageBuddy(head) && page_private(head) >= order)
			return true;
	}
	return nr_on_cpus(page) > 0;
}

/*
 * What a task that exits leaves is dropped by the task that runs next on the CPU,
 * on its way out of the scheduler: finish_task_switch(), with preemption off.
 */
static void leave_a_page(void)
{
	struct page *page = alloc_pages_node_noprof(0, HOST_NODE_GFP & ~__GFP_DIRECT_RECLAIM, 0);

	if (!page)
		return;
	preempt_count_add(1);
	__free_pages(page, 0);
	preempt_count_sub(1);
	parked.nr_looks++;
	parked.most = max(parked.most, is_listed(page) ? 0UL : 1UL);
}

void compact_look(void)
{
	parked.nr_copies++;
	if (parked.nr_copies == parked.leaving)
		leave_a_page();
	/* What was freed until now is found by the time the next is. */
	if (parked.nr_copies == parked.isolating)
		host_zone()->nr_isolate_pageblock++;
	else if (parked.nr_copies == parked.disabling)
		zone_pcp_disable(host_zone());
	else if ((parked.isolating && parked.nr_copies > parked.isolating) ||
		 (parked.disabling && parked.nr_copies > parked.disabling))
		look_everywhere();
}
