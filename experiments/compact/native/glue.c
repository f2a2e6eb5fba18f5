// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's side of the compact experiment's whole allocations: compiled by
 * kbuild against the variant's own headers, linked to the variant's own
 * compaction.o, page_alloc.o, migrate.o and what these call.
 *
 * Nothing here runs inside the clock but the loop that asks for huge pages,
 * which is the caller's: each request takes the allocator's slow path.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmzone.h>
#include <linux/pgtable.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include "internal.h"
#include "kernel.h"
#include "offload.h"
#include "page_tables.h"
#include "compact_kernel.h"

/* After so many requests in a row that fail there is nothing left to be had. */
#define MOST_FAILURES 256

static struct {
	struct compact_request request;
	struct compact_result result;
	long events_before[COMPACT_NR_EVENTS];
	unsigned long flushes_before;
} world;

/* --- Before ---------------------------------------------------------------- */

static void take_ballast(void)
{
	struct compact_result *result = &world.result;
	struct page *page;

	while ((page = alloc_pages_node_noprof(0, HOST_NODE_GFP_FREE, COMPACT_HUGE_ORDER)))
		world.request.ballast[result->nr_ballast++] = page_to_pfn(page);
}

static void read_events(long *events)
{
	static const enum vm_event_item items[COMPACT_NR_EVENTS] = {
#define EVENT(name) name,
#include "events.def"
	};
	unsigned int i, cpu;

	for (i = 0; i < COMPACT_NR_EVENTS; i++) {
		events[i] = 0;
		for_each_possible_cpu(cpu)
			events[i] += per_cpu(vm_event_states, cpu).event[items[i]];
	}
}

/* What the model has put off is done within the clock where there is no room for more. */
static void choose_engine(const struct compact_request *request)
{
	const struct offload_request wanted = {
		.engine = request->channels ? OFFLOAD_DMA : OFFLOAD_SERIAL,
		.channels = request->channels,
		.setup_ns = request->setup_ns,
		.mb_per_s = request->mb_per_s,
		.nr_copies = 2 * request->nr_pages,
		.first_pfn = NODE_PFN,
		.nr_frames = request->nr_pages,
		.streams = true,
	};

	/* What channels copy for a trial lies where page tables will. */
	host_reset_tables(NODE_TABLE_PFN);
	offload_choose(&wanted);
}

static unsigned long prepare(const struct compact_request *request)
{
	unsigned long nr_mapped;

	host_place_map(NODE_TABLE_PFN, (void *)NODE_MAP_ADDRESS);
	host_place_contents(NODE_TABLE_PFN, (void *)NODE_RAM_ADDRESS);
	memset(&world, 0, sizeof(world));
	world.request = *request;
	sysctl_compact_unevictable_allowed = !request->mlocked_every;
	host_boot_node(request->nr_pages);
	choose_engine(request);
	if (request->channels) {
		/* What was copied for a trial has changed the order of what is free. */
		host_boot_node(request->nr_pages);
	}
	nr_mapped = compact_populate(request);
	world.result.nr_mapped = nr_mapped;
	take_ballast();
	compact_begin_looking(request);
	memset(&current->tlb_ubc, 0, sizeof(current->tlb_ubc));
	read_events(world.events_before);
	world.flushes_before = compact_nr_flushes();
	return nr_mapped;
}

/* --- The operation ---------------------------------------------------------- */

static void run(void)
{
	struct compact_result *result = &world.result;
	unsigned int in_a_row = 0;

	while (result->nr_allocated < world.request.nr_huge && in_a_row < MOST_FAILURES) {
		unsigned long asked_ns = host_now_ns();
		struct page *page = alloc_pages_node_noprof(0, HOST_NODE_GFP, COMPACT_HUGE_ORDER);

		result->longest_ns = max(result->longest_ns, host_now_ns() - asked_ns);
		if (!page) {
			result->nr_failed++;
			in_a_row++;
			continue;
		}
		in_a_row = 0;
		world.request.huge[result->nr_allocated++] = page_to_pfn(page);
	}
}

/* --- After ------------------------------------------------------------------ */

static void read(struct compact_result *result)
{
	unsigned int i;

	compact_end_looking(&world.result);
	/* Before LRU batches are drained: what these free might clear the flag. */
	world.result.is_below_high = test_bit(ZONE_BELOW_HIGH, &host_zone()->flags);
	world.result.high_wmark = high_wmark_pages(host_zone());
	world.result.pcp_high_min = this_cpu_ptr(host_zone()->per_cpu_pageset)->high_min;
	offload_settle();
	world.result.nr_offloaded = offload_nr_copied();
	world.result.nr_flushes = compact_nr_flushes() - world.flushes_before;
	read_events(world.result.events);
	for (i = 0; i < COMPACT_NR_EVENTS; i++)
		world.result.events[i] -= world.events_before[i];
	host_read_node(&world.result.node);
	host_read_process(&world.result.node);
	*result = world.result;
}

static void read_entries(unsigned long *ptes)
{
	host_read_entries(ptes, world.result.nr_mapped);
}

static int is_movable(unsigned long pfn)
{
	return get_pageblock_migratetype(pfn_to_page(pfn)) == MIGRATE_MOVABLE;
}

static const struct compact_ops ops = {
	.layout = host_read_layout,
	.prepare = prepare,
	.read_entries = read_entries,
	.run = run,
	.read = read,
	.is_movable = is_movable,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
	{ "sizeof.page", sizeof(struct page) },
	{ }
};
