/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of the kernel's side of memremap_pages() offer each other. */
#ifndef REAM_REMAP_KERNEL_H
#define REAM_REMAP_KERNEL_H

#include <linux/memremap.h>
#include "remap.h"

/* Of other objects, in no header. arch/x86/kernel/setup.c, mm/memory.c, arch/x86/mm/init.c */
extern unsigned long highest_memmap_pfn;
extern int after_bootmem;
/* Static there. */
extern int page_size_mask;
/* Under one of these names. arch/x86/mm/kaslr.c */
extern unsigned long physmem_end, direct_map_physmem_end;

/* kernel_rcu.c: callbacks run from now on; and: all that are queued have run. */
void remap_begin_rcu(void);
void remap_end_rcu(void);

/**
 * struct remap_slab - what kmalloc() has
 * @nr_pages: Of the node.
 * @nr_objects: In use.
 */
struct remap_slab {
	unsigned long nr_pages, nr_objects;
};

/* kernel_slab.c */
void remap_reset_slab(void);
struct remap_slab remap_read_slab(void);
/* Free the object of at most a page that this is a place in. */
void remap_free_around(void *within);

/**
 * struct remap_range - what is looked at
 * @start_pfn: First frame of the device.
 * @nr_pages: Of it.
 * @altmap_pages: Frames at its start that may hold its map.
 * @node_pages: Frames of the node.
 */
struct remap_range {
	unsigned long start_pfn, nr_pages, altmap_pages, node_pages;
};

/* kernel_tables.c: what page tables hold, and which frames of the node are used. */
void remap_read_tables(const struct remap_range *range, struct remap_state *state);

#endif
