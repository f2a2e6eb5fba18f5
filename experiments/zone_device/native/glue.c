// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's side of the zone-device experiment: compiled by kbuild against
 * the variant's own headers, linked to the variant's own mm_init.o.
 *
 * It builds the little world that memmap_init_zone_device() looks at (a node,
 * a zone, sections, a pagemap) and calls it. Inside the clock there is that
 * call alone, unless a request wants what its callers do around it; that is
 * then done by the kernel's own clear_page() and memset(), and a loop of ours.
 */
#include <linux/jump_label.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/poison.h>
#include <linux/string.h>
#include "internal.h"
#include "kernel.h"
#include "zone_device.h"

static struct {
	struct zone *zone;
	unsigned long start_pfn;
	unsigned long nr_pages;
	struct dev_pagemap *pgmap;
	unsigned long chunk_pages;
	bool zero;
	bool poison;
	bool list;
	struct page *free_pages;	/* the list's newest */
} world;

/* What nothing may change: the node with all its zones, and the pagemap. */
static struct pglist_data node_before;
static struct dev_pagemap pgmap_before;

/* As init_mem_debugging_and_hardening() does it for init_on_alloc=1, or =0. */
static void set_init_on_alloc(bool enabled)
{
	if (enabled)
		static_branch_enable(&init_on_alloc);
	else
		static_branch_disable(&init_on_alloc);
}

static void prepare(const struct zone_device_request *request)
{
	struct pglist_data *pgdat = host_node(request->nid);
	unsigned long end_pfn = request->start_pfn + request->nr_pages;
	struct dev_pagemap *pgmap = request->pgmap;
	const struct dev_pagemap fresh = {
		.altmap = {
			.base_pfn = request->start_pfn,
			.end_pfn = end_pfn - 1,
			.free = request->skip_pages,
		},
		.type = request->type,
		.flags = request->skip_pages ? PGMAP_ALTMAP_VALID : 0,
		.vmemmap_shift = request->order,
		.nr_range = 1,
		.range = {
			.start = PFN_PHYS(request->start_pfn),
			.end = PFN_PHYS(end_pfn) - 1,
		},
	};
	struct zone *zone = &pgdat->node_zones[ZONE_DEVICE];

	host_place_map(request->start_pfn, request->map);
	host_set_node_cpus(request->nid, request->nr_cpus);
	/* That they were there at boot decides compound_nr_pages(). */
	host_add_sections(request->start_pfn, request->nr_pages, request->usage,
			  request->early_pages, request->old_blocks);

	set_init_on_alloc(request->init_on_alloc);

	zone->zone_pgdat = pgdat;
	zone->zone_start_pfn = request->start_pfn;
	zone->spanned_pages = request->nr_pages;

	memcpy(pgmap, &fresh, sizeof(*pgmap));

	world.zone = zone;
	world.start_pfn = request->start_pfn;
	world.nr_pages = request->nr_pages;
	world.pgmap = pgmap;
	world.chunk_pages = request->chunk_pages ?: request->nr_pages;
	world.zero = request->zero;
	world.poison = request->poison;
	world.list = request->list;
	world.free_pages = NULL;
	memcpy(&node_before, pgdat, sizeof(*pgdat));
	memcpy(&pgmap_before, pgmap, sizeof(*pgmap));
}

/* A section's map is a block of its own: allocated, and poisoned at once. */
static void make_map(unsigned long pfn, unsigned long end_pfn)
{
	const size_t bytes = PAGES_PER_SECTION * sizeof(struct page);

	for (; pfn < end_pfn; pfn += PAGES_PER_SECTION) {
		void *map = pfn_to_page(pfn);

		if (world.zero)
			for (size_t done = 0; done < bytes; done += PAGE_SIZE)
				clear_page(map + done);
		if (world.poison)
			memset(map, PAGE_POISON_PATTERN, bytes);
	}
}

static void link_pages(unsigned long pfn, unsigned long end_pfn)
{
	for (; pfn < end_pfn; pfn++) {
		struct page *page = pfn_to_page(pfn);

		page->zone_device_data = world.free_pages;
		world.free_pages = page;
	}
}

static void run(void)
{
	unsigned long end_pfn = world.start_pfn + world.nr_pages;
	unsigned long pfn, next_pfn;

	for (pfn = world.start_pfn; pfn < end_pfn; pfn = next_pfn) {
		next_pfn = min(pfn + world.chunk_pages, end_pfn);
		if (world.zero || world.poison)
			make_map(pfn, next_pfn);
		memmap_init_zone_device(world.zone, pfn, next_pfn - pfn,
					world.pgmap);
		if (world.list)
			link_pages(pfn, next_pfn);
	}
}

static bool unlink_pages(void)
{
	unsigned long pfn = world.start_pfn + world.nr_pages;

	if (!world.list)
		return true;
	while (pfn-- > world.start_pfn) {
		struct page *page = world.free_pages;

		if (page != pfn_to_page(pfn))
			return false;
		world.free_pages = page->zone_device_data;
		page->zone_device_data = NULL;
	}
	return !world.free_pages;
}

static const struct host_fact fields[] = {
#include "zone_fields.h"
	FIELD(dev_pagemap, altmap.base_pfn),
	FIELD(dev_pagemap, altmap.end_pfn),
	FIELD(dev_pagemap, altmap.reserve),
	FIELD(dev_pagemap, altmap.free),
	FIELD(dev_pagemap, altmap.align),
	FIELD(dev_pagemap, altmap.alloc),
	FIELD(dev_pagemap, type),
	FIELD(dev_pagemap, flags),
	FIELD(dev_pagemap, vmemmap_shift),
	FIELD(dev_pagemap, nr_range),
	FIELD(dev_pagemap, range),
	{ }
};

static const struct host_area *left_alone(void)
{
	static struct host_area areas[NR_ZONE_AREAS + 2];

	host_zone_areas(areas, world.zone, &node_before, fields);
	areas[NR_ZONE_AREAS] = (struct host_area){
		"dev_pagemap", world.pgmap, &pgmap_before,
		sizeof(pgmap_before), fields,
	};
	return areas;
}

static const struct zone_device_ops ops = {
	.prepare = prepare,
	.run = run,
	.unlink = unlink_pages,
	.left_alone = left_alone,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
#include "facts.h"
	{ "DEBUG_VM", IS_ENABLED(CONFIG_DEBUG_VM) },
	{ }
};
