// SPDX-License-Identifier: GPL-2.0-only
/* Counts all memory and compares; then looks at what users see. */
#include <linux/swap.h>
#include "census.h"
#include "checks.h"
#include "hosted.h"
#include "steps.h"

struct census census;

static void make_room(void)
{
	unsigned long frames = computer.nr_frames;

	census.use = host_alloc(frames);
	census.references = host_alloc(frames * sizeof(u32));
	census.mappings = host_alloc(frames * sizeof(u32));
	census.huge_mappings = host_alloc(frames * sizeof(u32));
	census.slot_entries = host_alloc(MOST_SWAP_SLOTS * sizeof(u16));
	census.is_slot_cached = host_alloc(MOST_SWAP_SLOTS);
}

void begin_census(void)
{
	unsigned long frames = computer.nr_frames;

	if (!census.use)
		make_room();
	memset(census.use, UNKNOWN, frames);
	memset(census.references, 0, frames * sizeof(u32));
	memset(census.mappings, 0, frames * sizeof(u32));
	memset(census.huge_mappings, 0, frames * sizeof(u32));
	memset(census.slot_entries, 0, MOST_SWAP_SLOTS * sizeof(u16));
	memset(census.is_slot_cached, 0, MOST_SWAP_SLOTS);
	memset(census.node, 0, sizeof(census.node));
	memset(census.zone_mlock, 0, sizeof(census.zone_mlock));
	memset(census.charged, 0, sizeof(census.charged));
}

void check_everything(void)
{
	/* A batch that is not drained has references to folios, and is static in mm/swap.c. */
	lru_add_drain_all();
	begin_census();
	check_address_spaces();
	check_free_memory();
	check_caches();
	check_frames();
	check_swap();
	check_lists();
	check_counters();
	check_contents();
	check_tlb();
}
