// SPDX-License-Identifier: GPL-2.0-only
/* Check that the count of each swap slot equals the entries and caches that refer to it. */
#include <linux/memcontrol.h>
#include <linux/page_counter.h>
#include <linux/swap.h>
#include "swap.h"
#include "census.h"
#include "groups.h"
#include "hosted.h"
#include "trees.h"
#ifdef HAVE_SWAP_TABLE
#include "swap_table.h"
#else
#include <linux/swap_cgroup.h>
#include <linux/swap_slots.h>
#define SWAPFILE_CLUSTER HPAGE_PMD_NR	/* mm/swapfile.c */
#endif

/**
 * struct slot - the kernel's record of a swap slot
 * @is_bad: The slot is never allocated.
 * @is_used: The slot cannot be allocated at present.
 * @is_known: The slot is not bad, and @count is its whole count.
 * @count: Number of entries that refer to the slot.
 * @is_cached: The swap cache has a folio for the slot.
 */
struct slot {
	bool is_bad;
	bool is_used;
	bool is_known;
	unsigned int count;
	bool is_cached;
};

#ifdef HAVE_SWAP_TABLE
#define MOST_SLOTS (1UL << 30)		/* SWAP_USAGE_OFFLIST_BIT of mm/swapfile.c is above it */

static unsigned long nr_counted_as_used(struct swap_info_struct *swap)
{
	return atomic_long_read(&swap->inuse_pages) & (MOST_SLOTS - 1);
}

static struct swap_info_struct *the_swap(void)
{
	return swap_info[0];
}

static struct slot slot_at(struct swap_info_struct *swap, unsigned long slot)
{
	struct swap_cluster_info *cluster = __swap_offset_to_cluster(swap, slot);
	unsigned long at = slot % SWAPFILE_CLUSTER, entry = swap_table_get(cluster, at);
	struct slot found = {
		.is_bad = swp_tb_is_bad(entry), .is_known = !swp_tb_is_bad(entry),
		.is_used = !swp_tb_is_null(entry), .is_cached = swp_tb_is_folio(entry),
	};

	if (found.is_known)
		found.count = swp_tb_get_count(entry);
	if (found.count == SWP_TB_COUNT_MAX && cluster->extend_table)
		found.count = cluster->extend_table[at];
	else if (found.count == SWP_TB_COUNT_MAX)	/* a bad slot that was read ahead */
		found = (struct slot){ .is_bad = true, .is_used = true };
	return found;
}

static void count_kept_slots(void)
{
}
#else
/* Slots in the per-CPU caches of mm/swap_slots.c have SWAP_HAS_CACHE set. */
DECLARE_PER_CPU(struct swap_slots_cache, swp_slots);

static void count_kept_slots(void)
{
	int cpu, i;

	for_each_online_cpu(cpu) {
		struct swap_slots_cache *kept = &per_cpu(swp_slots, cpu);

		for (i = 0; kept->slots && i < kept->nr; i++)
			census.is_slot_cached[swp_offset(kept->slots[kept->cur + i])] = true;
		for (i = 0; kept->slots_ret && i < kept->n_ret; i++)
			census.is_slot_cached[swp_offset(kept->slots_ret[i])] = true;
	}
}

static unsigned long nr_counted_as_used(struct swap_info_struct *swap)
{
	return swap->inuse_pages;
}

static struct swap_info_struct *the_swap(void)
{
	return swp_swap_info(swp_entry(0, 0));
}

static struct slot slot_at(struct swap_info_struct *swap, unsigned long slot)
{
	unsigned char map = swap->swap_map[slot];

	if ((map & ~SWAP_HAS_CACHE) == SWAP_MAP_SHMEM)	/* one entry, of a shmem file */
		map = (map & SWAP_HAS_CACHE) | 1;
	return (struct slot){
		.is_bad = map == SWAP_MAP_BAD, .is_used = map,
		.is_known = map != SWAP_MAP_BAD && !(map & COUNT_CONTINUED),
		.count = map & ~(SWAP_HAS_CACHE | COUNT_CONTINUED),
		.is_cached = map & SWAP_HAS_CACHE,
	};
}
#endif

bool has_swap_area(void)
{
	return the_swap() && the_swap()->swap_file;
}

static void check_slot(const struct slot *is, unsigned long slot)
{
	if (!is->is_known)
		return;
	if (is->count != census.slot_entries[slot])
		wrong("swap slot %lu is counted as named %u times, and is %u times",
		      slot, is->count, census.slot_entries[slot]);
	if (is->is_cached != census.is_slot_cached[slot])
		wrong("swap slot %lu is counted as %sin the swap cache, and is%s",
		      slot, is->is_cached ? "" : "not ",
		      census.is_slot_cached[slot] ? "" : " not");
}

/* --- clusters, from which large folios get contiguous slots ------------- */

/* A cluster also counts slots that are never allocated: header, bad ones, beyond the end. */
static void check_cluster(struct swap_info_struct *swap, unsigned long first)
{
	const struct swap_cluster_info *cluster = swap->cluster_info + first / SWAPFILE_CLUSTER;
	unsigned int nr_taken = 0;
	unsigned long slot;

	for (slot = first; slot < first + SWAPFILE_CLUSTER; slot++)
		nr_taken += slot >= swap->max || slot_at(swap, slot).is_used;
	if (cluster->count != nr_taken)
		wrong("the cluster at swap slot %lu counts %u slots as taken, and %u are",
		      first, cluster->count, nr_taken);
}

static void check_clusters(struct swap_info_struct *swap)
{
	struct swap_cluster_info *cluster;
	unsigned long first;

	if (!swap->cluster_info)
		return;
	for (first = 0; first < swap->max; first += SWAPFILE_CLUSTER)
		check_cluster(swap, first);
	list_for_each_entry(cluster, &swap->free_clusters, list)
		if (cluster->count)
			wrong("a cluster of swap slots is listed as free, and %u are taken",
			      cluster->count);
}

/* --- memcgs that are charged for slots --------------------------------- */

#ifdef HAVE_SWAP_TABLE
static void check_paid(struct swap_info_struct *swap)
{
}
#else
static void check_paid(struct swap_info_struct *swap)
{
	static long nr_paid[USHRT_MAX + 1];	/* by memcg id; reset only for our memcgs */
	unsigned long slot;
	int group;

	if (mem_cgroup_disabled())
		return;
	for (group = 1; group < MOST_GROUPS; group++)
		if (memory_of_group(group))
			nr_paid[mem_cgroup_id(memory_of_group(group))] = 0;
	for (slot = 1; slot < swap->max; slot++)
		nr_paid[lookup_swap_cgroup_id(swp_entry(0, slot))]++;
	for (group = 1; group < MOST_GROUPS; group++) {
		struct mem_cgroup *memcg = memory_of_group(group);

		if (memcg && page_counter_read(&memcg->swap) != nr_paid[mem_cgroup_id(memcg)])
			wrong("group %d is charged for %lu swap slots, and %ld are its",
			      group, page_counter_read(&memcg->swap),
			      nr_paid[mem_cgroup_id(memcg)]);
	}
}
#endif

void check_swap(void)
{
	struct swap_info_struct *swap = the_swap();
	unsigned long slot, nr_used = 0, nr_bad = 0;

	if (!swap || !(swap->flags & SWP_WRITEOK))
		return;
	count_kept_slots();
	for (slot = 1; slot < swap->max; slot++) {
		const struct slot is = slot_at(swap, slot);

		nr_bad += is.is_bad;
		nr_used += is.is_used && !is.is_bad;
		check_slot(&is, slot);
	}
	if (nr_counted_as_used(swap) != nr_used)
		wrong("%lu swap slots are counted as used, and %lu are",
		      nr_counted_as_used(swap), nr_used);
	if (total_swap_pages != swap->max - 1 - nr_bad ||
	    get_nr_swap_pages() != total_swap_pages - nr_used)
		wrong("%ld of %ld swap slots are counted as free, and %ld of %ld are",
		      get_nr_swap_pages(), total_swap_pages,
		      swap->max - 1 - nr_bad - nr_used, swap->max - 1 - nr_bad);
	check_clusters(swap);
	check_paid(swap);
}
