// SPDX-License-Identifier: GPL-2.0-only
/*
 * Read the state of the node of ream/node.o: the layout of struct page, all lists
 * that frames may be on, and the counters.
 */
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmzone.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include "internal.h"
#ifdef HAVE_PAGE_ALLOC_HEADER
#include "page_alloc.h"
#endif
#include "kernel.h"
#include "node.h"

#define NR_LISTS (NR_PAGE_ORDERS * MIGRATE_TYPES + HOST_MOST_CPUS * NR_PCP_LISTS + NR_LRU_LISTS)

void host_read_layout(struct node_layout *layout)
{
	*layout = (struct node_layout){
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

static struct node_list lists[NR_LISTS];
static unsigned long nr_lists;

static void add_list(const struct list_head *head, enum node_list_kind kind,
		     unsigned int order, unsigned int group)
{
	lists[nr_lists++] = (struct node_list){ head, kind, order, group };
}

static void add_pcp_lists(unsigned int cpu)
{
	struct per_cpu_pages *pcp = per_cpu_ptr(host_zone()->per_cpu_pageset, cpu);
	unsigned int i;

	/* As pindex_to_order(). */
	for (i = 0; i < NR_PCP_LISTS; i++)
		add_list(&pcp->lists[i], NODE_PCP, i < NR_LOWORDER_PCP_LISTS ?
			 i / MIGRATE_PCPTYPES : HPAGE_PMD_ORDER, cpu);
}

static void read_lists(struct node_state *state)
{
	static unsigned long free_area_nr[NR_PAGE_ORDERS];
	static long pcp_count[HOST_MOST_CPUS];
	unsigned int order, i;

	nr_lists = 0;
	for (order = 0; order < NR_PAGE_ORDERS; order++) {
		for (i = 0; i < MIGRATE_TYPES; i++)
			add_list(&host_zone()->free_area[order].free_list[i], NODE_FREE,
				 order, order);
		free_area_nr[order] = host_zone()->free_area[order].nr_free;
	}
	for_each_possible_cpu(i) {
		add_pcp_lists(i);
		pcp_count[i] = per_cpu_ptr(host_zone()->per_cpu_pageset, i)->count;
	}
	for (i = 0; i < NR_LRU_LISTS; i++)
		if (i != LRU_UNEVICTABLE)
			add_list(&host_node(0)->__lruvec.lists[i], NODE_LRU, 0, 0);
	state->lists = lists;
	state->nr_lists = nr_lists;
	state->nr_orders = NR_PAGE_ORDERS;
	state->free_area_nr = free_area_nr;
	state->pcp_count = pcp_count;
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

/* Unlike zone_page_state_snapshot() this does not clamp negative sums to 0. */
static long zone_count(enum zone_stat_item item)
{
	long sum = atomic_long_read(&host_zone()->vm_stat[item]);
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(host_zone()->per_cpu_zonestats, cpu)->vm_stat_diff[item];
	return sum;
}

void host_read_node(struct node_state *state)
{
	unsigned int i;

	for_each_possible_cpu(i)
		lru_add_drain_cpu(i);
	state->managed = zone_managed_pages(host_zone());
	state->nr_free = zone_count(NR_FREE_PAGES);
	state->nr_lru = 0;
	for (i = NR_ZONE_LRU_BASE; i < NR_ZONE_LRU_BASE + NR_LRU_LISTS; i++)
		state->nr_lru += zone_count(i);
	state->nr_isolated[0] = node_count(NR_ISOLATED_ANON);
	state->nr_isolated[1] = node_count(NR_ISOLATED_FILE);
	state->nr_anon = node_count(NR_ANON_MAPPED);
	read_lists(state);
}
