// SPDX-License-Identifier: GPL-2.0-only
/* Swap: each slot's count is that of the entries that name it, and of the cache. */
#include <linux/swap.h>
#include "swap.h"
#include "census.h"
#include "hosted.h"
#include "trees.h"
#ifdef HAVE_SWAP_TABLE
#include "swap_table.h"
#else
#include <linux/swap_slots.h>
#endif

/**
 * struct slot - what the kernel has noted of a slot
 * @is_used: It may not be given to another page.
 * @is_known: It is neither bad, nor counted elsewhere, too.
 * @count: Of entries that name it.
 * @is_cached: A folio of the swap cache has it.
 */
struct slot {
	bool is_used;
	bool is_known;
	unsigned int count;
	bool is_cached;
};

#ifdef HAVE_SWAP_TABLE
#define IS_OFF_LIST (1UL << 30)		/* SWAP_USAGE_OFFLIST_BIT of mm/swapfile.c */

static unsigned long nr_counted_as_used(struct swap_info_struct *swap)
{
	return atomic_long_read(&swap->inuse_pages) & ~IS_OFF_LIST;
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
		.is_used = !swp_tb_is_null(entry), .is_known = !swp_tb_is_bad(entry),
		.is_cached = swp_tb_is_folio(entry),
	};

	if (found.is_known)
		found.count = swp_tb_get_count(entry);
	if (found.count == SWP_TB_COUNT_MAX)
		found.count = cluster->extend_table[at];
	return found;
}

static void count_kept_slots(void)
{
}
#else
/* Slots that CPUs keep for later are marked as the cache's; mm/swap_slots.c. */
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

	if ((map & ~SWAP_HAS_CACHE) == SWAP_MAP_SHMEM)	/* a file names it once */
		map = (map & SWAP_HAS_CACHE) | 1;
	return (struct slot){
		.is_used = map, .is_known = map != SWAP_MAP_BAD && !(map & COUNT_CONTINUED),
		.count = map & ~(SWAP_HAS_CACHE | COUNT_CONTINUED),
		.is_cached = map & SWAP_HAS_CACHE,
	};
}
#endif

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

void check_swap(void)
{
	struct swap_info_struct *swap = the_swap();
	unsigned long slot, nr_used = 0;

	if (!swap || !(swap->flags & SWP_WRITEOK))
		return;
	count_kept_slots();
	for (slot = 1; slot < swap->max; slot++) {
		const struct slot is = slot_at(swap, slot);

		nr_used += is.is_used;
		check_slot(&is, slot);
	}
	if (nr_counted_as_used(swap) != nr_used)
		wrong("%lu swap slots are counted as used, and %lu are",
		      nr_counted_as_used(swap), nr_used);
}
