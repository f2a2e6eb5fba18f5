// SPDX-License-Identifier: GPL-2.0-only
/* Check that the counters of nodes, zones and memcgs equal the census. */
#include <linux/hugetlb.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/page_counter.h>
#include <linux/swapops.h>
#include <linux/vmstat.h>
#include "census.h"
#include "checks.h"
#include "groups.h"
#include "hosted.h"
#include "private.h"
#include "steps.h"

#define MOST_KERNEL_PAGES 8192	/* of a memcg: slab objects, page tables and per-CPU stocks */

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
 * collapse_file() in mm/khugepaged.c adds only the pages that the file lacked to
 * the counters of the new folio's node. The other pages stay counted on their
 * old nodes, so after a collapse only the sum over all nodes is right.
 * folio_migrate_mapping() in mm/migrate.c leaves a huge page of a file counted
 * on the node it came from.
 */
static bool may_be_elsewhere(enum node_stat_item item)
{
	unsigned long events[NR_VM_EVENT_ITEMS];

	if (item != NR_FILE_PAGES && item != NR_SHMEM && item != NR_FILE_THPS)
		return false;
	all_vm_events(events);
	return events[item == NR_FILE_THPS ? PGMIGRATE_SUCCESS : THP_COLLAPSE_ALLOC];
}

static bool is_known_to_be_elsewhere(enum node_stat_item item)
{
	long is = 0, counted = 0;
	int node;

	if (!may_be_elsewhere(item))
		return false;
	for_each_online_node(node) {
		is += node_counter(node, item);
		counted += census.node[node][item];
	}
	return is == counted;
}

static const enum zone_stat_item zone_items[] = {
	NR_ZONE_INACTIVE_ANON, NR_ZONE_ACTIVE_ANON, NR_ZONE_INACTIVE_FILE, NR_ZONE_ACTIVE_FILE,
	NR_ZONE_UNEVICTABLE, NR_ZONE_WRITE_PENDING, NR_MLOCK,
};

static void check_zone(struct zone *zone)
{
	const long *counted = census.zone[zone_to_nid(zone)][zone_idx(zone)];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(zone_items); i++) {
		long is = zone_page_state_snapshot(zone, zone_items[i]);

		if (is != counted[zone_items[i]])
			wrong("%s of a zone of node %d is %ld, and %ld pages are counted",
			      zone_stat_name(zone_items[i]), zone_to_nid(zone), is,
			      counted[zone_items[i]]);
	}
}

static void check_slabs(int node)
{
	const long *counted = census.node[node];
	long is = node_counter(node, NR_SLAB_RECLAIMABLE_B);

	if (is << PAGE_SHIFT != counted[NR_SLAB_RECLAIMABLE_B])
		wrong("NR_SLAB_RECLAIMABLE_B of node %d is %ld pages, and %ld are counted",
		      node, is, counted[NR_SLAB_RECLAIMABLE_B] >> PAGE_SHIFT);
	/* It includes large kmalloc() objects, which look like any other kernel page. */
	is = node_counter(node, NR_SLAB_UNRECLAIMABLE_B);
	if (is << PAGE_SHIFT < counted[NR_SLAB_UNRECLAIMABLE_B])
		wrong("NR_SLAB_UNRECLAIMABLE_B of node %d is %ld pages, and %ld are counted",
		      node, is, counted[NR_SLAB_UNRECLAIMABLE_B] >> PAGE_SHIFT);
}

static void check_node(int node)
{
	struct zone *zones = NODE_DATA(node)->node_zones, *zone;
	unsigned int i;

	for (zone = zones; zone < zones + MAX_NR_ZONES; zone++)
		if (populated_zone(zone))
			check_zone(zone);
	for (i = 0; i < ARRAY_SIZE(items); i++) {
		long is = node_counter(node, items[i].item);

		if (is != census.node[node][items[i].item] &&
		    !is_known_to_be_elsewhere(items[i].item))
			wrong("%s of node %d is %ld, and %ld pages are counted",
			      items[i].name, node, is, census.node[node][items[i].item]);
	}
	check_slabs(node);
}

/*
 * Most of these counters exist for nodes only. NR_FILE_PAGES of a memcg is right
 * only as a sum over all nodes, since a migrated swap cache page takes it along.
 */
static bool is_of_nodes_alone(enum node_stat_item item)
{
	return item == NR_FILE_PAGES || item == NR_ISOLATED_ANON || item == NR_ISOLATED_FILE ||
	       item == NR_SHMEM_PMDMAPPED || item == NR_FILE_PMDMAPPED;
}

/* A hwpoisoned page is no longer charged, but may stay in the page cache of its file. */
static bool there_was_a_broken_page;

static void check_group_on_node(struct mem_cgroup *memcg, int group, int node)
{
	struct lruvec *lruvec = mem_cgroup_lruvec(memcg, NODE_DATA(node));
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(items); i++) {
		enum node_stat_item item = items[i].item;
		long counted = census.of_group[group][node][item], is;

		if (is_of_nodes_alone(item))
			continue;
		is = lruvec_page_state(lruvec, item);
		if (is != counted && !may_be_elsewhere(item))
			wrong("%s of group %d is %ld on node %d, and %ld pages are counted",
			      items[i].name, group, is, node, counted);
	}
}

static void check_group(int group)
{
	struct mem_cgroup *memcg = memory_of_group(group);
	long charged, rest, files, counted = 0;
	int node;

	if (!memcg)
		return;
	charged = page_counter_read(&memcg->memory);
	rest = charged - census.charged[group];
	if (rest < 0 || rest > MOST_KERNEL_PAGES)
		wrong("group %d is charged for %ld pages, and its users have %ld",
		      group, charged, census.charged[group]);
	there_was_a_broken_page |= atomic_long_read(&num_poisoned_pages) > 0;
	if (there_was_a_broken_page)
		return;
	for_each_online_node(node) {
		check_group_on_node(memcg, group, node);
		counted += census.of_group[group][node][NR_FILE_PAGES];
	}
	files = memcg_page_state(memcg, NR_FILE_PAGES);
	if (files != counted && !may_be_elsewhere(NR_FILE_PAGES))
		wrong("NR_FILE_PAGES of group %d is %ld, and %ld pages are counted",
		      group, files, counted);
}

/*
 * In 6.12 folio_migrate_mapping() adds one to the counter for each hugetlb folio
 * that it migrates, and nothing ever subtracts it.
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

/* Digest the positions where the next compaction begins, and whether it is deferred. */
static void note_compaction(const struct zone *zone)
{
	int mode;

	for (mode = 0; mode < ASYNC_AND_SYNC; mode++)
		note(PART_compaction, zone->compact_cached_migrate_pfn[mode]);
	note(PART_compaction, zone->compact_cached_free_pfn);
	note(PART_compaction, zone->compact_considered);
	note(PART_compaction, zone->compact_defer_shift);
	note(PART_compaction, zone->compact_order_failed);
}

/* Check the pages of the memmap: those allocated at boot, and those added by hotplug. */
static void check_memmap(void)
{
	const long of_section = PFN_UP(PAGES_PER_SECTION * sizeof(struct page));
	long is_boot = atomic_long_read(&nr_memmap_boot_pages), boot = 0;
	long is_added = atomic_long_read(&nr_memmap_pages), added = 0;
	static long others = -1;	/* such as those of mm/page_ext.c, never subtracted */
	unsigned long number;

	for (number = 0; number <= __highest_present_section_nr; number++) {
		struct mem_section *section = __nr_to_section(number);

		if (early_section(section))
			boot += of_section;
		else if (present_section(section) && number == pfn_to_section_nr(first_private()))
			added += PFN_UP(NR_PRIVATE * sizeof(struct page));
		else if (present_section(section))
			added += of_section;
	}
	if (others < 0)
		others = is_added - added;
	added += others;
	if (is_boot != boot || is_added != added)
		wrong("nr_memmap_boot_pages is %ld and nr_memmap_pages %ld, and not %ld and %ld",
		      is_boot, is_added, boot, added);
}

void check_counters(void)
{
	int node, group, order;
	struct zone *zone;

	for_each_online_node(node)
		check_node(node);
	for_each_populated_zone(zone)
		note_compaction(zone);
	sum_up_groups();
	for (group = 1; group < MOST_GROUPS; group++)
		check_group(group);
	for (order = 2; order <= HPAGE_PMD_ORDER; order++)
		check_large_folios(order);
	check_memmap();
	note(PART_counters, digest());
	note_events();
}

/* --- digest of a run ---------------------------------------------------- */

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
