// SPDX-License-Identifier: GPL-2.0-only
/* Enumerate all memory, compare it with the counters, then check what user space sees. */
#include <linux/swap.h>
#include "census.h"
#include "checks.h"
#include "hosted.h"
#include "private.h"
#include "steps.h"

struct census census;

static void make_room(unsigned long frames)
{
	census.use = host_alloc(frames);
	census.references = host_alloc(frames * sizeof(u32));
	census.mappings = host_alloc(frames * sizeof(u32));
	census.huge_mappings = host_alloc(frames * sizeof(u32));
	census.is_dirty = host_alloc(frames);
	census.slot_entries = host_alloc(MOST_SWAP_SLOTS * sizeof(u16));
	census.slot_index = host_alloc(MOST_SWAP_SLOTS * sizeof(pgoff_t));
	census.is_slot_cached = host_alloc(MOST_SWAP_SLOTS);
}

void begin_census(void)
{
	unsigned long frames = first_private() + NR_PRIVATE - LIBMM_FIRST_PFN;

	if (!census.use)
		make_room(frames);
	memset(census.use, UNKNOWN, frames);
	memset(census.references, 0, frames * sizeof(u32));
	memset(census.mappings, 0, frames * sizeof(u32));
	memset(census.huge_mappings, 0, frames * sizeof(u32));
	memset(census.is_dirty, 0, frames);
	memset(census.slot_entries, 0, MOST_SWAP_SLOTS * sizeof(u16));
	memset(census.is_slot_cached, 0, MOST_SWAP_SLOTS);
	memset(census.node, 0, sizeof(census.node));
	memset(census.of_group, 0, sizeof(census.of_group));
	memset(census.zone, 0, sizeof(census.zone));
	memset(census.anon_folios, 0, sizeof(census.anon_folios));
	memset(census.charged, 0, sizeof(census.charged));
	memset(census.parts, 0, sizeof(census.parts));
	begin_pools();
}

static void report_parts(void)
{
	static const char *const names[NR_PARTS] = {
		[PART_vmas] = "vmas", [PART_rss] = "rss", [PART_contents] = "contents",
		[PART_entries] = "entries", [PART_counters] = "counters", [PART_events] = "events",
		[PART_reschedules] = "reschedules", [PART_flushes] = "flushes",
		[PART_compaction] = "compaction", [PART_folios] = "folios",
	};
	char text[512];
	int i, at = 0;

	for (i = 0; i < NR_PARTS; i++)
		at += scnprintf(text + at, sizeof(text) - at, "%s\"%s\": \"%llx\"",
				i ? ", " : "", names[i], census.parts[i]);
	report("{\"line\": %u, \"parts\": {%s}}", line_under_way(), text);
}

void check_everything(void)
{
	/* Folio batches hold references and are static in mm/swap.c, so drain them first. */
	lru_add_drain_all();
	begin_census();
	check_address_spaces();
	check_vmas();
	check_free_memory();
	check_caches();
	check_frames();
	check_pools();
	check_swap();
	check_lists();
	check_counters();
	check_ksm();
	check_contents();
	check_soft_dirty();
	check_tlb();
	report_parts();
}
