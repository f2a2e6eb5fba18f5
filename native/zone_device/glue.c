// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's side of the zone-device experiment: compiled by kbuild against
 * the variant's own headers, linked to the variant's own mm_init.o.
 *
 * It builds the little world that memmap_init_zone_device() looks at (a node,
 * a zone, sections, a pagemap) and calls it. Nothing here runs inside the
 * clock but that call.
 */
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/string.h>
#include "internal.h"
#include "kernel.h"
#include "zone_device.h"

static struct {
	struct zone *zone;
	unsigned long start_pfn;
	unsigned long nr_pages;
	struct dev_pagemap *pgmap;
} world;

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

	vmemmap_base = (unsigned long)request->map -
		       request->start_pfn * sizeof(struct page);
	host_set_node_cpus(request->nid, request->nr_cpus);
	/* That they were there at boot decides compound_nr_pages(). */
	host_add_sections(request->start_pfn, request->nr_pages, request->usage,
			  request->early);

	zone->zone_pgdat = pgdat;
	zone->zone_start_pfn = request->start_pfn;
	zone->spanned_pages = request->nr_pages;

	memcpy(pgmap, &fresh, sizeof(*pgmap));

	world.zone = zone;
	world.start_pfn = request->start_pfn;
	world.nr_pages = request->nr_pages;
	world.pgmap = pgmap;
}

static void run(void)
{
	memmap_init_zone_device(world.zone, world.start_pfn, world.nr_pages,
				world.pgmap);
}

static const struct zone_device_ops ops = {
	.prepare = prepare,
	.run = run,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
#include "facts.h"
	{ }
};
