// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's side of the zone-contiguous experiment: compiled by kbuild
 * against the variant's own headers, linked to the variant's own mm_init.o.
 *
 * It builds a node, a zone and sections, and calls set_zone_contiguous() as
 * the plugging and unplugging of memory do: each block of memory is a call.
 */
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/string.h>
#include "internal.h"
#include "kernel.h"
#include "zone_contiguous.h"

static struct {
	struct zone *zone;
	struct zone_request request;
} world;

static struct pglist_data node_before;

static void set_online(unsigned long pfn, unsigned long nr_pages, bool online)
{
	unsigned long nr = pfn_to_section_nr(pfn), end = pfn_to_section_nr(pfn + nr_pages - 1);

	for (; nr <= end; nr++) {
		struct mem_section *section = __nr_to_section(nr);

		if (online)
			section->section_mem_map |= SECTION_IS_ONLINE;
		else
			section->section_mem_map &= ~SECTION_IS_ONLINE;
	}
}

static void set_section(unsigned long pfn, const struct section_state *state)
{
	struct mem_section *section = __pfn_to_section(pfn);

	if (!(state->flags & SECTION_PRESENT)) {
		section->section_mem_map = 0;
		section->usage = NULL;
		return;
	}
	section->section_mem_map = SECTION_HAS_MEM_MAP | SECTION_MARKED_PRESENT;
	if (state->flags & SECTION_ONLINE)
		section->section_mem_map |= SECTION_IS_ONLINE;
	if (state->flags & SECTION_EARLY)
		section->section_mem_map |= SECTION_IS_EARLY;
	memcpy(section->usage->subsection_map, &state->subsections, sizeof(state->subsections));
}

static void prepare(const struct zone_request *request)
{
	unsigned long end_pfn = request->start_pfn + request->nr_pages;
	struct pglist_data *pgdat = host_node(0);
	struct zone *zone = &pgdat->node_zones[ZONE_MOVABLE];
	const struct section_state *state = request->sections;
	unsigned long pfn;

	BUILD_BUG_ON(SUBSECTIONS_PER_SECTION != BITS_PER_LONG);
	host_place_map(request->first_pfn, request->map);
	host_add_sections(request->first_pfn, end_pfn - request->first_pfn, request->usage, 0, 0);
	for (pfn = request->first_pfn; pfn < end_pfn; pfn += PAGES_PER_SECTION)
		set_section(pfn, state++);
	zone->zone_pgdat = pgdat;
	zone->zone_start_pfn = request->start_pfn;
	zone->spanned_pages = request->nr_pages;
	zone->contiguous = false;
	world.zone = zone;
	world.request = *request;
	memcpy(&node_before, pgdat, sizeof(*pgdat));
}

/* As move_pfn_range_to_zone() and remove_pfn_range_from_zone() do it. */
static unsigned long look(unsigned long spanned_pages)
{
	struct zone *zone = world.zone;

	clear_zone_contiguous(zone);
	zone->spanned_pages = spanned_pages;
	set_zone_contiguous(zone);
	return zone->contiguous;
}

/* A block joins the zone before it is online. */
static unsigned long plug(void)
{
	const struct zone_request *request = &world.request;
	unsigned long block = request->block_pages, spanned, nr = 0;

	for (spanned = block; spanned <= request->nr_pages; spanned += block) {
		set_online(request->start_pfn + spanned - block, block, false);
		nr += look(spanned);
		set_online(request->start_pfn + spanned - block, block, true);
	}
	return nr;
}

static unsigned long unplug(void)
{
	const struct zone_request *request = &world.request;
	unsigned long spanned, nr = 0;

	for (spanned = request->nr_pages; spanned > request->block_pages;
	     spanned -= request->block_pages)
		nr += look(spanned - request->block_pages);
	return nr;
}

static unsigned long run(void)
{
	if (!world.request.block_pages)
		return look(world.request.nr_pages);
	return world.request.shrinks ? unplug() : plug();
}

static const struct host_fact fields[] = {
#include "zone_fields.h"
	{ }
};

static const struct host_area *left_alone(void)
{
	static struct host_area areas[NR_ZONE_AREAS + 1];

	/* What was found is known; how far the zone reaches is the caller's affair. */
	world.zone->contiguous = false;
	world.zone->spanned_pages = world.request.nr_pages;
	host_zone_areas(areas, world.zone, &node_before, fields);
	return areas;
}

static const struct zone_ops ops = {
	.prepare = prepare,
	.run = run,
	.left_alone = left_alone,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
#include "facts.h"
	{ "ZONE_NORMAL", ZONE_NORMAL },
	{ "ZONE_MOVABLE", ZONE_MOVABLE },
	{ "pageblock_nr_pages", pageblock_nr_pages },
	{ }
};
