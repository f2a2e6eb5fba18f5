/* SPDX-License-Identifier: GPL-2.0-only */
/* The zone-device experiment: what runner.c asks of glue.c. */
#ifndef REAM_ZONE_DEVICE_H
#define REAM_ZONE_DEVICE_H

#include "host.h"

/**
 * struct zone_device_request - one device range and where its map lies
 * @nr_cpus: CPUs of that node; 0 = none, all CPUs are on node 0.
 * @map: Where the descriptor of @start_pfn lies.
 * @pgmap: Room for a struct dev_pagemap, the same for every variant, since
 *	each descriptor holds its address.
 * @usage: Room for the pageblock bits of every section.
 */
struct zone_device_request {
#define REQUEST PLAN_MEMBER
#define ROW(...)
#include "row.def"
	unsigned int nr_cpus;
	void *map;
	void *pgmap;
	void *usage;
};

/**
 * struct zone_device_ops - what one variant can do
 * @prepare: Point the kernel's data at a request; not timed.
 * @run: The kernel's memmap_init_zone_device(), and what a request adds to it.
 * @unlink: Take the pages off the list again, if they were linked; not timed.
 *	Returns false if it is not the list that @run made.
 * @left_alone: What @run had to leave as it was, up to an area of no type: the
 *	zone, its node, the pagemap.
 */
struct zone_device_ops {
	void (*prepare)(const struct zone_device_request *request);
	void (*run)(void);
	bool (*unlink)(void);
	const struct host_area *(*left_alone)(void);
};

#endif
