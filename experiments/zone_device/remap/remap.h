/* SPDX-License-Identifier: GPL-2.0-only */
/* memremap_pages() and memunmap_pages(): what runner.c asks of glue.c. */
#ifndef REAM_REMAP_H
#define REAM_REMAP_H

#include "host.h"
#include "node_place.h"

/*
 * Where things lie, the same for every variant: the memory map as if frame 0
 * had a descriptor, aligned as far as any compound page's part of it; likewise
 * the contents of frames. The node's frames are where ream/node.o has them.
 */
#define REMAP_MAP_ADDRESS 0x200000000000UL
#define REMAP_RAM_ADDRESS 0x300000000000UL

/**
 * struct remap_request - one device, and the node that its map is allocated of
 * @nr_cpus: CPUs of the node.
 * @pgmap: Room for a struct dev_pagemap, the same for every variant, since
 *	each descriptor holds its address.
 */
struct remap_request {
#define REQUEST PLAN_MEMBER
#define ROW(...)
#include "row.def"
	unsigned int nr_cpus;
	void *pgmap;
};

/**
 * struct remap_state - what is so; state.def has the words
 * @layout: Of all page tables: which frame is mapped where. Equal if that is
 *	equal.
 */
struct remap_state {
#define STATE PLAN_MEMBER_ULONG
#include "state.def"
	unsigned long layout;
};

/**
 * struct remap_ops - what one variant can do
 * @prepare: Boot a node, make calls that come before the timed one, and point
 *	the kernel's data at a request; not timed.
 * @map: memremap_pages().
 * @unmap: memunmap_pages().
 * @settle: Let grace periods end that nobody has waited for.
 * @read: Say what is so.
 * @read_usage: Copy the pageblock bits of the device's sections, each behind
 *	as much as a struct mem_section_usage begins with.
 */
struct remap_ops {
	void (*prepare)(const struct remap_request *request);
	void (*map)(void);
	void (*unmap)(void);
	void (*settle)(void);
	void (*read)(struct remap_state *state);
	void (*read_usage)(unsigned char *to);
};

#endif
