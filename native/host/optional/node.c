// SPDX-License-Identifier: GPL-2.0-only
/*
 * For experiments with the kernel's own page allocator: a node with one zone as
 * boot leaves it, made by the kernel's own functions in their order. The loops of
 * boot over frames are simple here: all frames exist, and none is reserved. An
 * experiment uses it if its file `objects` lists ream/node.o.
 */
#include <linux/bitmap.h>
#include <linux/blkdev.h>
#include <linux/kernel.h>
#include <linux/khugepaged.h>
#include <linux/list_lru.h>
#include <linux/memory_hotplug.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/page-isolation.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/swap.h>
#include <linux/topology.h>
#include <linux/vmstat.h>
#include "internal.h"
#ifdef HAVE_PAGE_ALLOC_HEADER
#include "page_alloc.h"
#endif
#ifdef HAVE_MM_INIT_HEADER
#include "mm_init.h"
#endif
#include "kernel.h"
#include "node.h"

/* --- Variables --------------------------------------------------------------- */

/* mm/swapfile.c: there is no swap, so anonymous memory cannot be reclaimed. */
atomic_long_t nr_swap_pages;
long total_swap_pages;

/* init/main.c: host_boot_node() sets it to SYSTEM_RUNNING at its end. */
enum system_states system_state;

/* Set with the node's sections. Weak, because mm/sparse.o may be linked, too. */
unsigned long __highest_present_section_nr __weak;

/* kernel/cpu.c: what num_online_cpus() returns. boot() sets only the mask. */
atomic_t __num_online_cpus = ATOMIC_INIT(1);

/* mm/mempolicy.c: written but not read here. Weak, because mempolicy.o may be linked. */
enum zone_type policy_zone __weak;

/* mm/memory-tiers.c: there is no slower memory. */
bool numa_demotion_enabled;

/* --- Replaced functions ------------------------------------------------------- */

/* khugepaged does not run, so no memory is kept free for it. */
void khugepaged_min_free_kbytes_update(void)
{
	HOST_STUB("stubbed");
}

/* No lock that printing takes is held, so nothing need be deferred. */
void __printk_deferred_enter(void)
{
	HOST_STUB("stubbed");
}

void __printk_deferred_exit(void)
{
	HOST_STUB("stubbed");
}

/* There is neither swap nor a file, so no page is written out. */
void blk_start_plug(struct blk_plug *plug)
{
	HOST_STUB("stubbed");
}

void blk_finish_plug(struct blk_plug *plug)
{
	HOST_STUB("stubbed");
}

/* arch/x86/mm/numa.c: the distances of a machine without a SLIT. */
int __node_distance(int from, int to)
{
	HOST_STUB("duplicated");
	return from == to ? LOCAL_DISTANCE : REMOTE_DISTANCE;
}

#define POOL_BYTES 16384

static size_t pool_used;
static __PCPU_ATTRS("") __aligned(64) char pool[POOL_BYTES];

static void reset_percpu(void)
{
	int cpu;

	pool_used = 0;
	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr((char __percpu *)pool, cpu), 0, POOL_BYTES);
}

/* Allocate from a linked per-CPU array, since only linked areas have per-CPU offsets. */
void __percpu *pcpu_alloc_noprof(size_t size, size_t align, bool reserved, gfp_t gfp)
{
	size_t at = ALIGN(pool_used, align);

	HOST_STUB("custom");
	if (at + size > POOL_BYTES)
		return NULL;
	pool_used = at + size;
	return (void __percpu *)(pool + at);
}

/* --- The boot ------------------------------------------------------------------ */

static DEFINE_PER_CPU(struct per_cpu_nodestat, first_nodestats);

/* All usage maps are in one allocation, which only grows. */
static void online_sections(unsigned long nr_pages)
{
	static void *usage;
	static unsigned long most;
	unsigned long nr = DIV_ROUND_UP(nr_pages, PAGES_PER_SECTION);
	unsigned long first = pfn_to_section_nr(NODE_PFN), at;
	unsigned long bytes = nr * (sizeof(struct mem_section_usage) +
				    SECTION_BLOCKFLAGS_BITS / BITS_PER_BYTE);

	if (nr > most) {
		host_free(usage);
		usage = host_alloc(bytes);
		most = nr;
	}
	memset(usage, 0, bytes);
	host_add_sections(NODE_PFN, nr_pages, usage, ~0UL - NODE_PFN, 0);
	for (at = first; at < first + nr; at++) {
		struct mem_section *section = __nr_to_section(at);

		section->section_mem_map |= SECTION_IS_ONLINE;
		bitmap_fill(section->usage->subsection_map, SUBSECTIONS_PER_SECTION);
	}
	__highest_present_section_nr = first + nr - 1;
}

/* As zone_init_internals() and init_currently_empty_zone(). */
static void init_zone(struct pglist_data *pgdat, enum zone_type type, unsigned long nr_pages)
{
	struct zone *zone = &pgdat->node_zones[type];
	unsigned int order, list;

	memset(zone, 0, sizeof(*zone));
	zone->name = zone_names[type];
	zone->zone_pgdat = pgdat;
	zone_set_nid(zone, pgdat->node_id);
	zone->zone_start_pfn = nr_pages ? NODE_PFN : 0;
	zone->spanned_pages = nr_pages;
	zone->present_pages = nr_pages;
	/* Preliminary: build_all_zonelists() decides by it whether to group by mobility. */
	atomic_long_set(&zone->managed_pages, nr_pages);
	spin_lock_init(&zone->lock);
	zone_seqlock_init(zone);
	zone_pcp_init(zone);
	for (order = 0; order < NR_PAGE_ORDERS; order++)
		for (list = 0; list < MIGRATE_TYPES; list++)
			INIT_LIST_HEAD(&zone->free_area[order].free_list[list]);
	zone->initialized = nr_pages > 0;
}

static void init_queue(wait_queue_head_t *queue)
{
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->head);
}

#ifndef HAVE_DEFERRED_SPLIT_QUEUE
/* As thp_shrinker_init(). Weak, because mm/huge_memory.o may not be linked. */
extern struct list_lru deferred_split_lru __weak;

static void init_split_queue(void)
{
	static struct list_lru_node queue;

	if (!&deferred_split_lru)
		return;
	queue = (struct list_lru_node){};
	INIT_LIST_HEAD(&queue.lru.list);
	spin_lock_init(&queue.lru.lock);
	deferred_split_lru.node = &queue;
}
#endif

/* As pgdat_init_internals(). */
static void init_node(struct pglist_data *pgdat, unsigned long nr_pages)
{
	unsigned int i;

	memset(pgdat, 0, sizeof(*pgdat));
	pgdat->node_start_pfn = NODE_PFN;
	pgdat->node_spanned_pages = nr_pages;
	pgdat->node_present_pages = nr_pages;
	pgdat->nr_zones = ZONE_NORMAL + 1;
	pgdat->first_deferred_pfn = ULONG_MAX;
	pgdat->per_cpu_nodestats = &first_nodestats;
	pgdat_resize_init(pgdat);
#ifdef HAVE_DEFERRED_SPLIT_QUEUE
	spin_lock_init(&pgdat->deferred_split_queue.split_queue_lock);
	INIT_LIST_HEAD(&pgdat->deferred_split_queue.split_queue);
#else
	init_split_queue();
#endif
	init_queue(&pgdat->kswapd_wait);
	init_queue(&pgdat->pfmemalloc_wait);
	init_queue(&pgdat->kcompactd_wait);
	for (i = 0; i < NR_VMSCAN_THROTTLE; i++)
		init_queue(&pgdat->reclaim_wait[i]);
	lruvec_init(&pgdat->__lruvec);
	for (i = 0; i < MAX_NR_ZONES; i++)
		init_zone(pgdat, i, i == ZONE_NORMAL ? nr_pages : 0);
}

static void set_nodes(void)
{
	static const enum node_states states[] = {
		N_POSSIBLE, N_ONLINE, N_NORMAL_MEMORY, N_MEMORY,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(states); i++)
		node_states[states[i]] = nodemask_of_node(0);
	nr_node_ids = 1;
	memset(vm_zone_stat, 0, sizeof(vm_zone_stat));
	memset(vm_node_stat, 0, sizeof(vm_node_stat));
	for_each_possible_cpu(i) {
		memset(per_cpu_ptr(&vm_event_states, i), 0, sizeof(vm_event_states));
		memset(per_cpu_ptr(&first_nodestats, i), 0, sizeof(first_nodestats));
	}
}

static void init_pageblock(struct page *page)
{
#ifdef HAVE_INIT_PAGEBLOCK_MIGRATETYPE
	init_pageblock_migratetype(page, MIGRATE_MOVABLE, false);
#else
	set_pageblock_migratetype(page, MIGRATE_MOVABLE);
#endif
}

/* As memmap_init() and memblock_free_all(). */
static void free_frames(unsigned long nr_pages)
{
	unsigned long pfn, end = NODE_PFN + nr_pages;

	for (pfn = NODE_PFN; pfn < end; pfn++) {
		__init_single_page(pfn_to_page(pfn), pfn, ZONE_NORMAL, 0);
		if (pageblock_aligned(pfn))
			init_pageblock(pfn_to_page(pfn));
	}
	for (pfn = NODE_PFN; pfn < end; pfn += pageblock_nr_pages)
		__free_pages_core(pfn_to_page(pfn), pageblock_order, MEMINIT_EARLY);
	atomic_long_set(&_totalram_pages, nr_pages);
}

/* Become a user task: compaction captures free blocks only for these (task_capc()). */
static void become_task(void)
{
	if (!current->signal)
		current->signal = host_alloc(sizeof(*current->signal));
	current->flags = 0;
}

void host_boot_node(unsigned long nr_pages)
{
	struct pglist_data *pgdat = host_node(0);

	BUILD_BUG_ON(pageblock_order != NODE_BLOCK_ORDER);
	BUILD_BUG_ON(MAX_ORDER_NR_PAGES != NODE_STEP);
	become_task();
	reset_percpu();
	system_state = SYSTEM_BOOTING;
	gfp_allowed_mask = GFP_BOOT_MASK;
	set_nodes();
	online_sections(nr_pages);
	init_node(pgdat, nr_pages);
	build_all_zonelists(NULL);	/* as mm_core_init(), with boot pagesets */
	/* As reset_all_zones_managed_pages(). */
	atomic_long_set(&pgdat->node_zones[ZONE_NORMAL].managed_pages, 0);
	free_frames(nr_pages);
	/* As page_alloc_init_late(), and the steps of boot after it. */
	static_branch_disable(&deferred_pages);
	setup_per_cpu_pageset();
	system_state = SYSTEM_RUNNING;
	gfp_allowed_mask = __GFP_BITS_MASK;
	init_per_zone_wmark_min();
	set_zone_contiguous(&pgdat->node_zones[ZONE_NORMAL]);
}
