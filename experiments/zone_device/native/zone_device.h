/* SPDX-License-Identifier: GPL-2.0-only */
/* The zone-device experiment: what runner.c asks of glue.c. */
#ifndef REAM_ZONE_DEVICE_H
#define REAM_ZONE_DEVICE_H

/**
 * struct zone_device_request - one device range and where its map lies
 * @start_pfn: First frame; section aligned.
 * @nr_pages: Frames of the device.
 * @skip_pages: Frames at its start that hold the map itself (altmap); 0 = the
 *	map is in RAM and there is no altmap.
 * @order: vmemmap_shift of the pagemap.
 * @type: enum memory_type, by value.
 * @early_pages: Frames at the start whose sections count as present since
 *	boot; there compound pages get all their descriptors even without an
 *	altmap.
 * @old_blocks: What each byte of the pageblocks' bits held before.
 * @nid: Node of the device.
 * @nr_cpus: CPUs of that node; 0 = none, all CPUs are on node 0.
 * @chunk_pages: Frames of each call; 0 = all of the device in one.
 * @zero: Whether each section's map is cleared first, a page at a time, as
 *	init_on_alloc has the allocator do it.
 * @poison: Whether it is then filled, as page_init_poison() does it.
 * @list: Whether each call is followed by linking all its pages to a list,
 *	as the test_hmm module does it.
 * @map: Where the descriptor of @start_pfn lies.
 * @pgmap: Room for a struct dev_pagemap, the same for every variant, since
 *	each descriptor holds its address.
 * @usage: Room for the pageblock bits of every section.
 */
struct zone_device_request {
	unsigned long start_pfn;
	unsigned long nr_pages;
	unsigned long skip_pages;
	unsigned int order;
	unsigned int type;
	unsigned long early_pages;
	unsigned int old_blocks;
	unsigned int nid;
	unsigned int nr_cpus;
	unsigned long chunk_pages;
	unsigned int zero;
	unsigned int poison;
	unsigned int list;
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
