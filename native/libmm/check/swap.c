// SPDX-License-Identifier: GPL-2.0-only
/* Swap: each slot's count is that of the entries that name it, and of the cache. */
#include <linux/swap.h>
#include <linux/swap_slots.h>
#include <linux/swapops.h>
#include "swap.h"
#include "census.h"
#include "hosted.h"

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

static void check_slot(struct swap_info_struct *swap, unsigned long slot)
{
	unsigned char map = swap->swap_map[slot];
	unsigned int count = map & ~(SWAP_HAS_CACHE | COUNT_CONTINUED);
	bool is_cached = map & SWAP_HAS_CACHE;

	if (map == SWAP_MAP_BAD || map & COUNT_CONTINUED)
		return;
	if (count != census.slot_entries[slot])
		wrong("swap slot %lu is counted as named %u times, and is %u times",
		      slot, count, census.slot_entries[slot]);
	if (is_cached != census.is_slot_cached[slot])
		wrong("swap slot %lu is counted as %sin the swap cache, and is%s",
		      slot, is_cached ? "" : "not ", census.is_slot_cached[slot] ? "" : " not");
}

void check_swap(void)
{
	struct swap_info_struct *swap = swp_swap_info(swp_entry(0, 0));
	unsigned long slot, nr_used = 0;

	if (!swap || !(swap->flags & SWP_WRITEOK))
		return;
	count_kept_slots();
	for (slot = 1; slot < swap->max; slot++) {
		nr_used += swap->swap_map[slot] != 0;
		check_slot(swap, slot);
	}
	if (swap->inuse_pages != nr_used)
		wrong("%u swap slots are counted as used, and %lu are",
		      swap->inuse_pages, nr_used);
}
