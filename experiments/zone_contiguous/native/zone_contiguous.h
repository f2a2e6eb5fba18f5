/* SPDX-License-Identifier: GPL-2.0-only */
/* The zone-contiguous experiment: what runner.c asks of glue.c. */
#ifndef REAM_ZONE_CONTIGUOUS_H
#define REAM_ZONE_CONTIGUOUS_H

#include "host.h"

#define SECTION_PRESENT 1UL
#define SECTION_ONLINE 2UL
#define SECTION_EARLY 4UL

/**
 * struct section_state - one section, as the oracle describes it
 * @flags: SECTION_*.
 * @subsections: A bit for each 2 MiB that are there.
 */
struct section_state {
	unsigned long flags;
	unsigned long subsections;
};

/**
 * struct zone_request - one zone
 * @map: Where the descriptor of @first_pfn lies.
 * @usage: Room for what the kernel keeps of every section.
 * @sections: Of all that the zone spans.
 */
struct zone_request {
#define REQUEST PLAN_MEMBER
#define ROW(...)
#include "row.def"
	void *map;
	void *usage;
	const struct section_state *sections;
};

/**
 * struct zone_ops - what one variant can do
 * @prepare: Make the zone, its sections and nothing of its memory map; not timed.
 * @run: Have the kernel's set_zone_contiguous() look at it, once for each
 *	block. Returns how often it found the zone contiguous.
 * @left_alone: What @run had to leave as it was, up to an area of no type: the
 *	zone and its node.
 */
struct zone_ops {
	void (*prepare)(const struct zone_request *request);
	unsigned long (*run)(void);
	const struct host_area *(*left_alone)(void);
};

#endif
