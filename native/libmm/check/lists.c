// SPDX-License-Identifier: GPL-2.0-only
/* Check the LRU lists and the deferred split queues. */
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmzone.h>
#include "census.h"
#include "hosted.h"
#include "trees.h"

/* Add the pages of a list to @nr, by their LRU list. Return: the pages on this list. */
static long check_list(struct list_head *folios, int node, long *nr)
{
	struct folio *folio;
	long nr_here = 0;

	list_for_each_entry(folio, folios, lru) {
		nr_here += folio_nr_pages(folio);
		nr[list_of(folio)] += folio_nr_pages(folio);
		if (!folio_test_lru(folio) || folio_nid(folio) != node)
			wrong("folio %#lx is in a list of node %d, and its flags say otherwise",
			      folio_pfn(folio), node);
	}
	return nr_here;
}

#ifdef CONFIG_LRU_GEN
/* Check folios of one type and zone. Only the sum is exact: generation counts lag behind. */
static void check_type(struct lru_gen_folio *its, int type, int zone, int node, long *nr)
{
	long counted = 0, here = 0;
	int i;

	for (i = 0; i < MAX_NR_GENS; i++) {
		counted += its->nr_pages[i][type][zone];
		here += check_list(&its->folios[i][type][zone], node, nr);
	}
	if (counted != here)
		wrong("generations of a group are counted as %ld pages of type %d, and have %ld",
		      counted, type, here);
}

static void check_generations(struct lruvec *lruvec, int node, long *nr)
{
	int type, zone;

	for (type = 0; type < ANON_AND_FILE; type++)
		for (zone = 0; zone < MAX_NR_ZONES; zone++)
			check_type(&lruvec->lrugen, type, zone, node, nr);
}
#else
static void check_generations(struct lruvec *lruvec, int node, long *nr)
{
}
#endif

static void check_lruvec(struct lruvec *lruvec, int node, long *nr_all)
{
	long nr[NR_LRU_LISTS] = { }, counted;
	enum lru_list list;
	int zone;

	for_each_evictable_lru(list) {
		long before = nr[list], here = check_list(&lruvec->lists[list], node, nr);

		if (nr[list] - before != here)
			wrong("a folio is in list %d of node %d, and its flags say otherwise",
			      list, node);
		if (mem_cgroup_disabled())
			continue;
		/* Folios of the multi-gen LRU do not count in lru_size. */
		counted = 0;
		for (zone = 0; zone < MAX_NR_ZONES; zone++)
			counted += mem_cgroup_get_zone_lru_size(lruvec, list, zone);
		if (counted != here)
			wrong("list %d of a group is counted as %ld pages, and has %ld", list,
			      counted, here);
	}
	check_generations(lruvec, node, nr);
	for_each_evictable_lru(list)
		nr_all[list] += nr[list];
}

static void check_lists_of(int node)
{
	long nr[NR_LRU_LISTS] = { };
	struct mem_cgroup *memcg = mem_cgroup_iter(NULL, NULL, NULL);
	enum lru_list list;

	/* Without the memory controller memcg is NULL and the lists are the node's own. */
	do {
		check_lruvec(mem_cgroup_lruvec(memcg, NODE_DATA(node)), node, nr);
		memcg = mem_cgroup_iter(NULL, memcg, NULL);
	} while (memcg);
	for_each_evictable_lru(list)
		if (nr[list] != census.node[node][NR_LRU_BASE + list])
			wrong("list %d of node %d has %ld pages, and %ld say that they are in it",
			      list, node, nr[list], census.node[node][NR_LRU_BASE + list]);
}

/* How often a large folio was swapped out as a whole. */
static u64 nr_swapped_out(void)
{
	u64 nr = 0;
	int cpu, order;

	for_each_possible_cpu(cpu)
		for (order = 2; order <= HPAGE_PMD_ORDER; order++)
			nr += per_cpu(mthp_stats, cpu).stats[order][MTHP_STAT_SWPOUT];
	return nr;
}

unsigned long __real_shrink_slab(gfp_t flags, int node, struct mem_cgroup *memcg, int priority);

static bool has_shrunk;

unsigned long __wrap_shrink_slab(gfp_t flags, int node, struct mem_cgroup *memcg, int priority)
{
	HOST_STUB("custom");
	has_shrunk = true;
	return __real_shrink_slab(flags, node, memcg, priority);
}

static bool has_split_to_large;

void see_split_to_large(void)
{
	has_split_to_large = true;
}

/*
 * A partially mapped folio must be on the deferred split queue, and so must a
 * huge page that the shrinker has not scanned yet. Source: transhuge.rst.
 * Folios in the swap cache are not queued, nor those that a split has made.
 */
void check_split_queued(struct folio *folio, unsigned long nr, unsigned long mapped)
{
	bool is_huge = census.huge_mappings[frame_of(&folio->page)] && nr == HPAGE_PMD_NR;

	if (nr <= 2 || !folio_test_anon(folio) || !list_empty(&folio->_deferred_list))
		return;
	if (!mapped || (mapped == nr && !is_huge) || folio_test_swapcache(folio) ||
	    has_split_to_large || nr_swapped_out())
		return;
	if (mapped < nr)
		wrong("folio %#lx has %lu of %lu pages mapped, and is not on the list to be split",
		      folio_pfn(folio), mapped, nr);
	else if (!has_shrunk)
		wrong("huge page %#lx was not looked at, and is not on the list to be split",
		      folio_pfn(folio));
}

static void check_split_list(struct list_head *list, unsigned long length, const char *whose,
			     int number)
{
	struct folio *folio;
	unsigned long nr = 0;

	list_for_each_entry(folio, list, _deferred_list) {
		nr++;
		if (!folio_test_large(folio) || !folio_test_anon(folio) || !folio_ref_count(folio))
			wrong("folio %#lx is to be split, and is no large anonymous folio",
			      folio_pfn(folio));
	}
	note(PART_counters, nr);
	if (length != nr)
		wrong("%s %d: %lu folios are counted as to be split, and %lu are",
		      whose, number, length, nr);
}

#ifdef HAVE_DEFERRED_SPLIT_QUEUE
static void check_split_queue(struct deferred_split *queue, const char *whose, int number)
{
	check_split_list(&queue->split_queue, queue->split_queue_len, whose, number);
}

static void check_split_queues_of_node(int node)
{
	check_split_queue(&NODE_DATA(node)->deferred_split_queue, "node", node);
}

static void check_split_queues_of_group(struct mem_cgroup *memcg, int group)
{
	check_split_queue(&memcg->deferred_split_queue, "group", group);
}
#else
extern struct list_lru deferred_split_lru;	/* mm/huge_memory.c */

static void check_split_queues_of_node(int node)
{
	struct list_lru_one *one = &deferred_split_lru.node[node].lru;

	check_split_list(&one->list, one->nr_items, "node", node);
}

static void check_split_queues_of_group(struct mem_cgroup *memcg, int group)
{
	struct list_lru_memcg *its = xa_load(&deferred_split_lru.xa, memcg_kmem_id(memcg));
	int node;

	for_each_online_node(node)
		if (its && memcg_kmem_id(memcg) >= 0)
			check_split_list(&its->node[node].list, its->node[node].nr_items, "group",
					 group);
}
#endif

void check_lists(void)
{
	struct mem_cgroup *memcg;
	int node, group = 0;

	for_each_online_node(node) {
		check_lists_of(node);
		check_split_queues_of_node(node);
	}
	for (memcg = mem_cgroup_iter(NULL, NULL, NULL); memcg;
	     memcg = mem_cgroup_iter(NULL, memcg, NULL))
		check_split_queues_of_group(memcg, group++);
}
