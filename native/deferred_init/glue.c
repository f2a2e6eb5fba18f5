// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's side of the deferred-init experiment: compiled by kbuild
 * against the variant's own headers, linked to the variant's own mm_init.o,
 * page_alloc.o and padata.o.
 *
 * It makes the nodes as they are when the kernel's thread pgdatinit begins,
 * and does that thread's work. Nothing here runs inside the clock but that.
 */
#include <linux/list.h>
#include <linux/memblock.h>
#include <linux/memory_hotplug.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/padata.h>
#include <linux/poison.h>
#include <linux/string.h>
#include <linux/vmstat.h>
#include "internal.h"
#include "kernel.h"
#include "locks.h"
#include "deferred_init.h"
#include "deferred_kernel.h"

static struct {
	unsigned long layout;	/* what memblock holds; 0 = nothing yet */
	unsigned int nr_nodes;
	bool padata_ready;
} world;

/* On x86-64 the last zone that a node's RAM begins in. */
#define LAST_ZONE ZONE_NORMAL

/*
 * An empty type with room for all that will come: the arrays it is linked
 * with are too small, and enlarging one takes memory that memblock has.
 */
static void empty_type(struct memblock_type *type, unsigned long nr_ranges)
{
	static struct memblock_region *of_memory, *of_reserved;
	struct memblock_region **own = type == &memblock.memory ? &of_memory :
								  &of_reserved;

	host_free(*own);
	/* Half of it must be free, or each addition is done twice. */
	type->max = 2 * nr_ranges + 2;
	*own = host_alloc(type->max * sizeof(**own));
	type->regions = *own;
	type->cnt = 0;
	type->total_size = 0;
}

static void fill_memblock(const struct deferred_request *request)
{
	unsigned long i;

	empty_type(&memblock.memory, request->nr_ranges);
	empty_type(&memblock.reserved, request->nr_ranges);
	for (i = 0; i < request->nr_ranges; i++) {
		const struct deferred_range *range = &request->ranges[i];
		phys_addr_t bytes = range->end - range->start;

		if (range->kind & 1)
			WARN_ON(memblock_reserve(range->start, bytes));
		else
			WARN_ON(memblock_add_node(range->start, bytes,
						  range->kind / 2,
						  MEMBLOCK_NONE));
	}
}

/* As free_area_init_core() and memmap_init() leave a zone and its node. */
static void prepare_node(unsigned int nid, const struct deferred_span *span)
{
	struct pglist_data *pgdat = host_node(nid);
	struct zone *zone = &pgdat->node_zones[LAST_ZONE];
	unsigned int order, type;

	pgdat->node_start_pfn = span->start_pfn;
	pgdat->node_spanned_pages = span->end_pfn - span->start_pfn;
	pgdat->node_present_pages = pgdat->node_spanned_pages;
	pgdat->nr_zones = LAST_ZONE + 1;
	pgdat->first_deferred_pfn = span->first_deferred_pfn;
	pgdat_resize_init(pgdat);

	memset(zone, 0, sizeof(*zone));
	zone->name = "Normal";
	zone->zone_pgdat = pgdat;
	zone_set_nid(zone, nid);
	zone->zone_start_pfn = pgdat->node_start_pfn;
	zone->spanned_pages = pgdat->node_spanned_pages;
	spin_lock_init(&zone->lock);
	zone_seqlock_init(zone);
	zone_pcp_init(zone);
	zone->present_pages = zone->spanned_pages;
	for_each_migratetype_order(order, type)
		INIT_LIST_HEAD(&zone->free_area[order].free_list[type]);
	zone->initialized = 1;
}

static void prepare(const struct deferred_request *request)
{
	const struct deferred_span *last = &request->node[request->nr_nodes - 1];
	unsigned int nid;

	BUILD_BUG_ON(MAX_NUMNODES < DEFERRED_MOST_NODES);
	if (!world.padata_ready) {
		padata_init();
		world.padata_ready = true;
	}
	vmemmap_base = (unsigned long)request->map -
		       request->map_pfn * sizeof(struct page);
	host_add_sections(request->map_pfn, last->end_pfn - request->map_pfn,
			  request->usage, ~0UL - request->map_pfn, 0);
	for (nid = 0; nid < DEFERRED_MOST_NODES; nid++) {
		bool used = nid < request->nr_nodes;

		host_give_cpus(nid, used ? nid * request->nr_cpus : 0,
			       used ? request->nr_cpus : 0);
		if (used)
			prepare_node(nid, &request->node[nid]);
	}
	if (world.layout != request->layout)
		fill_memblock(request);
	world.layout = request->layout;
	world.nr_nodes = request->nr_nodes;
	host_shares_cpus = request->shares_cpus;
}

/*
 * Of two buddies the upper one is initialised later, and its number says which
 * order makes it one. Nobody's list has it; taking it off changes nothing else.
 */
static void look_free_at(unsigned long pfn, unsigned int nid)
{
	struct page *page = pfn_to_page(pfn);

	memset(page, 0, sizeof(*page));
	set_page_links(page, LAST_ZONE, nid, pfn);
	set_page_private(page, min_t(unsigned int, __ffs(pfn),
				     MAX_PAGE_ORDER - 1));
	__SetPageBuddy(page);
	INIT_LIST_HEAD(&page->lru);
}

static void look_free(const struct deferred_request *request)
{
	unsigned long pfn = request->map_pfn;
	unsigned int nid;

	for (nid = 0; nid < request->nr_nodes; nid++)
		for (; pfn < request->node[nid].end_pfn; pfn++)
			look_free_at(pfn, nid);
}

static int grow(unsigned int order)
{
	return deferred_grow_zone(&host_node(0)->node_zones[LAST_ZONE], order);
}

static void run_node(void *pgdat)
{
	deferred_init_memmap(pgdat);
}

/*
 * The kernel starts a thread per node and waits for all. Here the caller is
 * node 0's, and any other's runs on another CPU.
 */
static void run(void)
{
	if (world.nr_nodes > 1)
		host_submit(run_node, host_node(1));
	run_node(host_node(0));
	if (world.nr_nodes > 1 && host_cancel(host_node(1)))
		run_node(host_node(1));
}

static long nr_free_pages_of(struct zone *zone)
{
	long nr = atomic_long_read(&zone->vm_stat[NR_FREE_PAGES]);
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		nr += per_cpu_ptr(zone->per_cpu_zonestats,
				  cpu)->vm_stat_diff[NR_FREE_PAGES];
	return nr;
}

static void read(unsigned int nid, struct deferred_zone *to)
{
	struct pglist_data *pgdat = host_node(nid);
	struct zone *zone = &pgdat->node_zones[LAST_ZONE];

	BUILD_BUG_ON(offsetof(struct free_area, free_list));
	*to = (struct deferred_zone) {
		.free_area = (char *)zone->free_area,
		.area_bytes = sizeof(zone->free_area[0]),
		.nr_free_offset = offsetof(struct free_area, nr_free),
		.nr_orders = NR_PAGE_ORDERS,
		.nr_types = MIGRATE_TYPES,
		.lru_offset = offsetof(struct page, lru),
		.order_offset = offsetof(struct page, private),
		.managed_pages = atomic_long_read(&zone->managed_pages),
		.nr_free_pages = nr_free_pages_of(zone),
		.first_deferred_pfn = pgdat->first_deferred_pfn,
	};
}

static const struct deferred_ops ops = {
	.prepare = prepare,
	.look_free = look_free,
	.grow = grow,
	.run = run,
	.read = read,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
#include "facts.h"
#include "buddy_facts.h"
	{ }
};
