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
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/vmstat.h>
#include "internal.h"
#ifdef HAVE_PAGE_ALLOC_HEADER
#include "page_alloc.h"
#endif
#ifdef HAVE_MM_INIT_HEADER
#include "mm_init.h"
#endif
#include "kernel.h"
#include "locks.h"
#include "deferred_init.h"
#include "deferred_kernel.h"

static struct {
	unsigned long layout;	/* what memblock holds; 0 = nothing yet */
	unsigned int nr_nodes;
	unsigned int zone;	/* the only one of each node */
	struct deferred_span node[DEFERRED_MOST_NODES];
	bool padata_ready;
	bool is_growing;
	bool is_boot;
	const char *broken;	/* the first rule that was not kept */
} world;

static struct pglist_data node_before[DEFERRED_MOST_NODES];

static struct zone *zone_of(unsigned int nid)
{
	return &host_node(nid)->node_zones[world.zone];
}

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

/* See struct deferred_range. */
#define KIND_RESERVED 1
#define KIND_MAY_GO 2
#define KINDS 4

static void fill_memblock(const struct deferred_request *request)
{
	unsigned long i;

	empty_type(&memblock.memory, request->nr_ranges);
	empty_type(&memblock.reserved, request->nr_ranges);
	for (i = 0; i < request->nr_ranges; i++) {
		const struct deferred_range *range = &request->ranges[i];
		phys_addr_t bytes = range->end - range->start;

		if (range->kind & KIND_RESERVED)
			WARN_ON(memblock_reserve(range->start, bytes));
		else
			WARN_ON(memblock_add_node(range->start, bytes,
						  range->kind / KINDS,
						  range->kind & KIND_MAY_GO ?
						  MEMBLOCK_HOTPLUG : MEMBLOCK_NONE));
	}
}

/* As zone_init_internals(): of every zone, whether it has memory or not. */
static void prepare_zone(struct pglist_data *pgdat, enum zone_type type)
{
	struct zone *zone = &pgdat->node_zones[type];

	memset(zone, 0, sizeof(*zone));
	zone_set_nid(zone, pgdat->node_id);
	zone->name = zone_names[type];
	zone->zone_pgdat = pgdat;
	spin_lock_init(&zone->lock);
	zone_seqlock_init(zone);
	zone_pcp_init(zone);
}

/* As free_area_init_core() and memmap_init() leave a zone and its node. */
static void prepare_node(unsigned int nid, const struct deferred_span *span)
{
	struct pglist_data *pgdat = host_node(nid);
	struct zone *zone = zone_of(nid);
	unsigned int order, type;

	pgdat->node_start_pfn = span->start_pfn;
	pgdat->node_spanned_pages = span->end_pfn - span->start_pfn;
	pgdat->node_present_pages = pgdat->node_spanned_pages;
	pgdat->nr_zones = world.zone + 1;
	pgdat->first_deferred_pfn = span->first_deferred_pfn;
	pgdat_resize_init(pgdat);

	for (type = 0; type < MAX_NR_ZONES; type++)
		prepare_zone(pgdat, type);
	zone->zone_start_pfn = pgdat->node_start_pfn;
	zone->spanned_pages = pgdat->node_spanned_pages;
	zone->present_pages = zone->spanned_pages;
	for (order = 0; order < NR_PAGE_ORDERS; order++)
		for (type = 0; type < MIGRATE_TYPES; type++)
			INIT_LIST_HEAD(&zone->free_area[order].free_list[type]);
	zone->initialized = 1;
	memcpy(&node_before[nid], pgdat, sizeof(*pgdat));
}

static void breaks(const char *what)
{
	if (!world.broken)
		world.broken = what;
}

/*
 * Interrupts allocate and free, too, so zone->lock is taken with interrupts
 * off. Growing has to be over before the threads begin. The task that grows the
 * zone excludes all others by holding the lock of the node's size, see struct
 * pglist_data.
 */
static void zone_is_locked(const struct pglist_data *pgdat, bool interrupts_off)
{
	if (!interrupts_off)
		breaks("zone->lock is taken with interrupts on");
	if (world.is_growing && !raw_spin_is_locked(&pgdat->node_size_lock.rlock))
		breaks("the zone grows while node_size_lock is not held");
	if (!world.is_growing && pgdat->first_deferred_pfn != ULONG_MAX)
		breaks("a thread frees pages while the zone can still grow");
	if (!atomic_read(&pgdat_init_n_undone))
		breaks("pages are freed after all threads have said that they are through");
}

/* On any CPU. */
static void lock_taken(const raw_spinlock_t *lock, bool interrupts_off)
{
	unsigned int nid;

	for (nid = 0; nid < world.nr_nodes; nid++) {
		const struct pglist_data *pgdat = host_node(nid);

		if (lock == &pgdat->node_size_lock.rlock && !interrupts_off)
			breaks("node_size_lock is taken with interrupts on");
		if (lock == &zone_of(nid)->lock.rlock)
			zone_is_locked(pgdat, interrupts_off);
	}
}

/* As init_mem_debugging_and_hardening() does it for init_on_free=1. */
static void set_contents(void *ram, unsigned long first_pfn)
{
	host_place_contents(first_pfn, ram);
	if (ram)
		static_branch_enable(&init_on_free);
	else
		static_branch_disable(&init_on_free);
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
	host_place_map(request->map_pfn, request->map);
	host_add_sections(request->map_pfn, last->end_pfn - request->map_pfn,
			  request->usage, ~0UL - request->map_pfn, 0);
	world.nr_nodes = request->nr_nodes;
	world.zone = request->zone;
	world.broken = NULL;
	for (nid = 0; nid < DEFERRED_MOST_NODES; nid++) {
		bool used = nid < request->nr_nodes;

		host_give_cpus(nid, used ? nid * request->nr_cpus : 0,
			       used ? request->nr_cpus : 0);
		if (used && !request->is_boot)
			prepare_node(nid, &request->node[nid]);
	}
	memcpy(world.node, request->node, sizeof(world.node));
	world.is_boot = request->is_boot;
	if (world.is_boot)
		boot_prepare(request);
	if (world.layout != request->layout)
		fill_memblock(request);
	world.layout = request->layout;
	set_contents(request->ram, request->map_pfn);
	memset(vm_zone_stat, 0, sizeof(vm_zone_stat));
	/* As page_alloc_init_late() does before it starts the threads. */
	atomic_set(&pgdat_init_n_undone, request->nr_nodes);
	reinit_completion(&pgdat_init_all_done_comp);
	host_shares_cpus = request->shares_cpus;
	host_lock_taken = request->is_watched ? lock_taken : NULL;
}

/*
 * Of two buddies the upper one is initialised later, and its number says which
 * order makes it one. Nobody's list has it; taking it off changes nothing else.
 */
static void look_free_at(unsigned long pfn, unsigned int nid)
{
	struct page *page = pfn_to_page(pfn);

	memset(page, 0, sizeof(*page));
	set_page_links(page, world.zone, nid, pfn);
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
	int grown;

	world.is_growing = true;
	grown = deferred_grow_zone(zone_of(0), order);
	world.is_growing = false;
	return grown;
}

static void run_node(void *pgdat)
{
	deferred_init_memmap(pgdat);
}

/*
 * The kernel starts a thread per node and waits for all. Here the caller is
 * node 0's, and any other's runs on another CPU.
 */
static void run_threads(void)
{
	if (world.nr_nodes > 1)
		host_submit(run_node, host_node(1));
	run_node(host_node(0));
	if (world.nr_nodes > 1 && host_cancel(host_node(1)))
		run_node(host_node(1));
}

static void run(void)
{
	if (world.is_boot)
		boot_run(world.nr_nodes, run_threads);
	else
		run_threads();
}

/* What @total holds and what CPUs have not added yet; zones share the latter. */
static long sum_of(const atomic_long_t *stat, enum zone_stat_item item,
		   const struct zone *zone)
{
	long nr = atomic_long_read(&stat[item]);
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		nr += per_cpu_ptr(zone->per_cpu_zonestats,
				  cpu)->vm_stat_diff[item];
	return nr;
}

static void read(unsigned int nid, struct deferred_zone *to)
{
	struct pglist_data *pgdat = host_node(nid);
	struct zone *zone = zone_of(nid);

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
		.nr_free_pages = sum_of(zone->vm_stat, NR_FREE_PAGES, zone),
		.nr_free_of_all = sum_of(vm_zone_stat, NR_FREE_PAGES, zone),
#ifdef HAVE_NR_FREE_PAGES_BLOCKS
		.counted_order = pageblock_order,
		.nr_free_in_blocks = sum_of(zone->vm_stat, NR_FREE_PAGES_BLOCKS, zone),
#endif
		.first_deferred_pfn = pgdat->first_deferred_pfn,
	};
}

static const struct host_fact fields[] = {
#include "zone_fields.h"
	{ }
};

/* The runner looks at what @zone has of these. */
static void expect_what_is_read(struct zone *expected, const struct zone *zone)
{
	memcpy(expected->free_area, zone->free_area, sizeof(zone->free_area));
	expected->managed_pages = zone->managed_pages;
	expected->vm_stat[NR_FREE_PAGES] = zone->vm_stat[NR_FREE_PAGES];
#ifdef HAVE_NR_FREE_PAGES_BLOCKS
	expected->vm_stat[NR_FREE_PAGES_BLOCKS] = zone->vm_stat[NR_FREE_PAGES_BLOCKS];
#endif
}

static const struct host_area *left_alone(unsigned int nid)
{
	static struct host_area areas[NR_ZONE_AREAS + 1];
	static const struct host_area nothing;
	struct pglist_data *pgdat = host_node(nid), *expected = &node_before[nid];
	const struct zone *zone = zone_of(nid);

	if (world.is_boot)
		return &nothing;
	expect_what_is_read(&expected->node_zones[world.zone], zone);
	expected->first_deferred_pfn = pgdat->first_deferred_pfn;
	host_zone_areas(areas, zone, expected, fields);
	return areas;
}

/* page_alloc_init_late() waits until as many threads as there are nodes say so. */
static const char *broken(void)
{
	unsigned int cpu;

	if (atomic_read(&pgdat_init_n_undone))
		breaks("not one report for each node that its thread is through");
	if (pgdat_init_all_done_comp.done != 1)
		breaks("who waits for all nodes is not woken once");
	for_each_possible_cpu(cpu)
		if (per_cpu(host_interrupts_off, cpu))
			breaks("interrupts are off when all is done");
	if (world.is_boot && !world.broken)
		world.broken = boot_broken(world.node, world.nr_nodes);
	return world.broken;
}

static const struct deferred_ops ops = {
	.prepare = prepare,
	.look_free = look_free,
	.grow = grow,
	.run = run,
	.read = read,
	.left_alone = left_alone,
	.broken = broken,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
#include "facts.h"
#include "buddy_facts.h"
	{ }
};
