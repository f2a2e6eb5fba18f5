// SPDX-License-Identifier: GPL-2.0-only
/* Counters of nodes, zones and groups: each is what was counted. */
#include <linux/hugetlb.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/page_counter.h>
#include <linux/vmstat.h>
#include "census.h"
#include "checks.h"
#include "groups.h"
#include "hosted.h"
#include "steps.h"

#define MOST_KERNEL_PAGES 8192	/* of a group: objects and tables, and what CPUs have taken ahead */

static const struct {
	enum node_stat_item item;
	const char *name;
} items[] = {
#define ITEM(name) { name, #name }
	ITEM(NR_INACTIVE_ANON), ITEM(NR_ACTIVE_ANON), ITEM(NR_INACTIVE_FILE),
	ITEM(NR_ACTIVE_FILE), ITEM(NR_UNEVICTABLE), ITEM(NR_ISOLATED_ANON),
	ITEM(NR_ISOLATED_FILE), ITEM(NR_ANON_MAPPED), ITEM(NR_FILE_MAPPED),
	ITEM(NR_FILE_PAGES), ITEM(NR_FILE_DIRTY), ITEM(NR_WRITEBACK), ITEM(NR_SHMEM),
	ITEM(NR_SHMEM_THPS), ITEM(NR_SHMEM_PMDMAPPED), ITEM(NR_FILE_THPS),
	ITEM(NR_FILE_PMDMAPPED), ITEM(NR_ANON_THPS), ITEM(NR_PAGETABLE), ITEM(NR_SWAPCACHE),
};

static long node_counter(int node, enum node_stat_item item)
{
	struct pglist_data *pgdat = NODE_DATA(node);
	long value = atomic_long_read(&pgdat->vm_stat[item]);
	int cpu;

	for_each_online_cpu(cpu)
		value += per_cpu_ptr(pgdat->per_cpu_nodestats, cpu)->vm_node_stat_diff[item];
	return value;
}

/*
 * mm/khugepaged.c: collapse_file() adds the pages that a file lacked to the
 * counters of the new folio's node, and leaves the others in those of the nodes
 * where they were. So after a collapse only the sum of all nodes is right.
 */
static bool is_known_to_be_elsewhere(enum node_stat_item item)
{
	unsigned long events[NR_VM_EVENT_ITEMS];
	long is = 0, counted = 0;
	int node;

	if (item != NR_FILE_PAGES && item != NR_SHMEM)
		return false;
	all_vm_events(events);
	for_each_online_node(node) {
		is += node_counter(node, item);
		counted += census.node[node][item];
	}
	return events[THP_COLLAPSE_ALLOC] && is == counted;
}

static void check_node(int node)
{
	long slab = node_counter(node, NR_SLAB_RECLAIMABLE_B) +
		    node_counter(node, NR_SLAB_UNRECLAIMABLE_B);
	struct zone *zones = NODE_DATA(node)->node_zones, *zone;
	unsigned int i;
	long mlock = 0;

	for (zone = zones; zone < zones + MAX_NR_ZONES; zone++)
		if (populated_zone(zone))
			mlock += zone_page_state_snapshot(zone, NR_MLOCK);

	for (i = 0; i < ARRAY_SIZE(items); i++) {
		long is = node_counter(node, items[i].item);

		if (is != census.node[node][items[i].item] &&
		    !is_known_to_be_elsewhere(items[i].item))
			wrong("%s of node %d is %ld, and %ld pages are counted",
			      items[i].name, node, is, census.node[node][items[i].item]);
	}
	/* Large objects of kmalloc() are counted with it, and cannot be told from other pages. */
	if (slab << PAGE_SHIFT < census.node[node][NR_SLAB_RECLAIMABLE_B])
		wrong("slab memory of node %d is %ld pages, and %ld are counted",
		      node, slab, census.node[node][NR_SLAB_RECLAIMABLE_B] >> PAGE_SHIFT);
	if (mlock != census.zone_mlock[node])
		wrong("NR_MLOCK of node %d is %ld, and %ld pages are counted",
		      node, mlock, census.zone_mlock[node]);
}

static void check_group(int group)
{
	struct mem_cgroup *memcg = memory_of_group(group);
	long charged, rest;

	if (!memcg)
		return;
	charged = page_counter_read(&memcg->memory);
	rest = charged - census.charged[group];
	if (rest < 0 || rest > MOST_KERNEL_PAGES)
		wrong("group %d is charged for %ld pages, and its users have %ld",
		      group, charged, census.charged[group]);
}

/*
 * In 6.12 each migration of a huge page of the pool counts one more, and nothing
 * counts it less: folio_migrate_mapping().
 */
static bool there_was_a_pool;

static void check_large_folios(int order)
{
	long is = 0;
	int cpu;

	there_was_a_pool |= hugetlb_total_pages() > 0;
	if (there_was_a_pool && order == HPAGE_PMD_ORDER)
		return;
	for_each_possible_cpu(cpu)
		is += per_cpu(mthp_stats, cpu).stats[order][MTHP_STAT_NR_ANON];
	if (is != census.anon_folios[order])
		wrong("nr_anon of order %d is %ld, and %ld folios are counted",
		      order, is, census.anon_folios[order]);
}

static void note_events(void)
{
	unsigned long events[NR_VM_EVENT_ITEMS];
	int i;

	all_vm_events(events);
	for (i = 0; i < NR_VM_EVENT_ITEMS; i++)
		note(PART_events, events[i]);
	note(PART_reschedules, nr_rescheds);
	note(PART_flushes, nr_flushed_pages);
}

void check_counters(void)
{
	int node, group, order;

	for_each_online_node(node)
		check_node(node);
	for (group = 1; group < MOST_GROUPS; group++)
		check_group(group);
	for (order = 2; order <= HPAGE_PMD_ORDER; order++)
		check_large_folios(order);
	note(PART_counters, digest());
	note_events();
}

/* --- one number of a run ----------------------------------------------- */

u64 digest(void)
{
	u64 all = 0xcbf29ce484222325ULL;
	unsigned int i;
	int node;

	for_each_online_node(node)
		for (i = 0; i < NR_VM_NODE_STAT_ITEMS; i++)
			all = mixed(all, node_counter(node, i));
	for (i = 0; i < NR_VM_ZONE_STAT_ITEMS; i++)
		all = mixed(all, global_zone_page_state(i));
	return mixed(all, jiffies_64);
}
