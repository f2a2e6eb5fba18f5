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
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include "internal.h"
#ifdef HAVE_PAGE_ALLOC_HEADER
#include "page_alloc.h"
#endif
#include "kernel.h"
#include "locks.h"
#include "offload.h"
#include "page_tables.h"
#include "compact_kernel.h"

/* After so many requests in a row that fail there is nothing left to be had. */
#define MOST_FAILURES 256

#define NR_LISTS (NR_PAGE_ORDERS * MIGRATE_TYPES + HOST_MOST_CPUS * NR_PCP_LISTS + NR_LRU_LISTS)

static struct {
	struct compact_request request;
	struct compact_result result;
	long events_before[COMPACT_NR_EVENTS];
	unsigned long flushes_before;
} world;

static struct zone *zone(void)
{
	return &host_node(0)->node_zones[ZONE_NORMAL];
}

static void read_layout(struct compact_layout *layout)
{
	*layout = (struct compact_layout){
		.page_bytes = sizeof(struct page),
		.flags = offsetof(struct page, flags),
		.links = offsetof(struct page, lru),
		.mapping = offsetof(struct folio, mapping),
		.index = offsetof(struct folio, index),
		.private = offsetof(struct folio, private),
		.mapcount = offsetof(struct page, _mapcount),
		.refcount = offsetof(struct page, _refcount),
		.links_mask = ~PAGEFLAGS_MASK,
		.lru = BIT(PG_lru),
		.dirty = BIT(PG_dirty),
		.anon_exclusive = BIT(PG_anon_exclusive),
		.mlocked = BIT(PG_mlocked),
		.unevictable = BIT(PG_unevictable),
		.locked = BIT(PG_locked),
		.type_mask = 0xff000000,
		.buddy_type = PGTY_buddy << 24,
#ifdef HAVE_PAGE_MAPPING_ANON
		.anon = PAGE_MAPPING_ANON,
#else
		.anon = FOLIO_MAPPING_ANON,
#endif
	};
}

/* --- Before ---------------------------------------------------------------- */

/* No thread of the kernel's: only for others a block is captured as it becomes free. */
static void become_task(void)
{
	if (!current->signal)
		current->signal = host_alloc(sizeof(*current->signal));
	current->flags = 0;
}

static void take_ballast(void)
{
	struct compact_result *result = &world.result;
	struct page *page;

	while ((page = alloc_pages_node_noprof(0, COMPACT_GFP_FREE, COMPACT_HUGE_ORDER)))
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
		.first_pfn = COMPACT_PFN,
		.nr_frames = request->nr_pages,
		.streams = true,
	};

	/* What channels copy for a trial lies where page tables will. */
	host_reset_tables(COMPACT_TABLE_PFN);
	offload_choose(&wanted);
}

static unsigned long prepare(const struct compact_request *request)
{
	unsigned long nr_mapped;

	host_place_map(COMPACT_TABLE_PFN, (void *)COMPACT_MAP_ADDRESS);
	host_place_contents(COMPACT_TABLE_PFN, (void *)COMPACT_RAM_ADDRESS);
	memset(&world, 0, sizeof(world));
	world.request = *request;
	sysctl_compact_unevictable_allowed = !request->mlocked_every;
	become_task();
	compact_reset();
	compact_boot_node(request->nr_pages);
	choose_engine(request);
	if (request->channels) {
		/* What was copied for a trial has changed the order of what is free. */
		compact_reset();
		compact_boot_node(request->nr_pages);
	}
	nr_mapped = compact_populate(request);
	take_ballast();
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
		struct page *page = alloc_pages_node_noprof(0, COMPACT_GFP, COMPACT_HUGE_ORDER);

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

static struct compact_list lists[NR_LISTS];
static unsigned long nr_lists;

static void add_list(const struct list_head *head, enum compact_list_kind kind,
		     unsigned int order, unsigned int group)
{
	lists[nr_lists++] = (struct compact_list){ head, kind, order, group };
}

static void add_pcp_lists(unsigned int cpu)
{
	struct per_cpu_pages *pcp = per_cpu_ptr(zone()->per_cpu_pageset, cpu);
	unsigned int i;

	/* As pindex_to_order(). */
	for (i = 0; i < NR_PCP_LISTS; i++)
		add_list(&pcp->lists[i], COMPACT_PCP, i < NR_LOWORDER_PCP_LISTS ?
			 i / MIGRATE_PCPTYPES : HPAGE_PMD_ORDER, cpu);
}

static void read_lists(struct compact_result *result)
{
	static unsigned long free_area_nr[NR_PAGE_ORDERS];
	static long pcp_count[HOST_MOST_CPUS];
	unsigned int order, i;

	nr_lists = 0;
	for (order = 0; order < NR_PAGE_ORDERS; order++) {
		for (i = 0; i < MIGRATE_TYPES; i++)
			add_list(&zone()->free_area[order].free_list[i], COMPACT_FREE,
				 order, order);
		free_area_nr[order] = zone()->free_area[order].nr_free;
	}
	for_each_possible_cpu(i) {
		add_pcp_lists(i);
		pcp_count[i] = per_cpu_ptr(zone()->per_cpu_pageset, i)->count;
	}
	for (i = 0; i < NR_LRU_LISTS; i++)
		if (i != LRU_UNEVICTABLE)
			add_list(&host_node(0)->__lruvec.lists[i], COMPACT_LRU, 0, 0);
	result->lists = lists;
	result->nr_lists = nr_lists;
	result->nr_orders = NR_PAGE_ORDERS;
	result->free_area_nr = free_area_nr;
	result->pcp_count = pcp_count;
}

static long node_count(enum node_stat_item item)
{
	struct pglist_data *pgdat = host_node(0);
	long sum = atomic_long_read(&pgdat->vm_stat[item]);
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(pgdat->per_cpu_nodestats, cpu)->vm_node_stat_diff[item];
	return sum;
}

/* Unlike zone_page_state_snapshot() it says so if there are less than none. */
static long zone_count(enum zone_stat_item item)
{
	long sum = atomic_long_read(&zone()->vm_stat[item]);
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(zone()->per_cpu_zonestats, cpu)->vm_stat_diff[item];
	return sum;
}

static void read(struct compact_result *result)
{
	unsigned int i;

	offload_settle();
	world.result.nr_offloaded = offload_nr_copied();
	world.result.nr_flushes = compact_nr_flushes() - world.flushes_before;
	read_events(world.result.events);
	for (i = 0; i < COMPACT_NR_EVENTS; i++)
		world.result.events[i] -= world.events_before[i];
	for_each_possible_cpu(i)
		lru_add_drain_cpu(i);
	compact_read_process(&world.result);
	world.result.managed = zone_managed_pages(zone());
	world.result.nr_free = zone_count(NR_FREE_PAGES);
	world.result.nr_lru = 0;
	for (i = NR_ZONE_LRU_BASE; i < NR_ZONE_LRU_BASE + NR_LRU_LISTS; i++)
		world.result.nr_lru += zone_count(i);
	world.result.nr_isolated[0] = node_count(NR_ISOLATED_ANON);
	world.result.nr_isolated[1] = node_count(NR_ISOLATED_FILE);
	world.result.nr_anon = node_count(NR_ANON_MAPPED);
	read_lists(&world.result);
	*result = world.result;
}

static int is_movable(unsigned long pfn)
{
	return get_pageblock_migratetype(pfn_to_page(pfn)) == MIGRATE_MOVABLE;
}

static const struct compact_ops ops = {
	.layout = read_layout,
	.prepare = prepare,
	.read_entries = compact_read_entries,
	.run = run,
	.read = read,
	.is_movable = is_movable,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
	{ "sizeof.page", sizeof(struct page) },
	{ }
};
