// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's side of unmapping down to the page allocator: compiled by kbuild
 * against the variant's own headers, linked to the variant's own memory.o,
 * swap.o, page_alloc.o and what these call.
 *
 * Page tables, the gather's pages and what is mapped are all of one node, and
 * go back to its per-CPU and free lists within the clock, except page tables.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pgtable.h>
#include <linux/sched.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include "internal.h"
#include "kernel.h"
#include "freeing.h"
#include "node.h"
#include "page_tables.h"
#include "tlb_flushes.h"
#include "unmap.h"

extern unsigned long highest_memmap_pfn;

static struct {
	struct freeing_request request;
	long freed_before;
} world;

static long nr_freed(void)
{
	long sum = 0;
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(vm_event_states, cpu).event[PGFREE];
	return sum;
}

/* Take a further reference to every held_every-th folio. */
static void hold_some(const struct freeing_request *request)
{
	unsigned long i, nr = request->nr_mapped >> request->order;

	for (i = 0; request->held_every && i < nr; i += request->held_every)
		folio_get(pfn_folio(pte_pfn(ptep_get(host_pte_of(i << request->order)))));
}

static int prepare(const struct freeing_request *request)
{
	unsigned long i;

	host_place_map(NODE_TABLE_PFN, (void *)NODE_MAP_ADDRESS);
	host_place_contents(NODE_TABLE_PFN, (void *)NODE_RAM_ADDRESS);
	highest_memmap_pfn = ULONG_MAX;
	world.request = *request;
	host_boot_node(request->nr_pages);
	host_new_process(request->nr_mapped);
	for (i = 0; i < request->nr_mapped >> request->order; i++)
		if (!host_fault((unsigned long)request->folios[i] << request->order,
				request->order))
			return false;
	lru_add_drain();
	hold_some(request);
	current->mm = host_process.mm;
	current->active_mm = host_process.mm;
	host_reset_flushes();
	world.freed_before = nr_freed();
	return true;
}

static void run(void)
{
	host_unmap_all(&host_process.vma, world.request.exits, NULL);
}

static void read_entries(unsigned long *ptes)
{
	host_read_entries(ptes, world.request.nr_mapped);
}

static void read(struct freeing_result *result)
{
	result->nr_freed = nr_freed() - world.freed_before;
	result->nr_flushes = host_flushes.nr;
	host_read_node(&result->node);
	host_read_process(&result->node);
}

static const struct freeing_ops ops = {
	.layout = host_read_layout,
	.prepare = prepare,
	.read_entries = read_entries,
	.run = run,
	.read = read,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
	{ "sizeof.page", sizeof(struct page) },
	{ }
};
