/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside a hosted kernel: a node with the kernel's own allocator, as a boot
 * leaves it (ream/node.o), what is read of it (ream/node_state.o), and a
 * process that has pages of it (ream/node_process.o).
 */
#ifndef REAM_NODE_H
#define REAM_NODE_H

#include <linux/gfp.h>
#include <linux/mm_types.h>
#include <linux/mmzone.h>
#include <linux/rmap.h>
#include "node_place.h"

/* Of user memory; from no other node. */
#define HOST_NODE_GFP (GFP_HIGHUSER_MOVABLE | __GFP_THISNODE | __GFP_NOWARN)
/* Nobody is woken up, or reclaims or compacts, for what is not free. */
#define HOST_NODE_GFP_FREE (HOST_NODE_GFP & ~__GFP_RECLAIM)

static inline struct zone *host_zone(void)
{
	return &host_node(0)->node_zones[ZONE_NORMAL];
}

/* The node with this many frames, all of them free. */
void host_boot_node(unsigned long nr_pages);

void host_read_layout(struct node_layout *layout);

/* What the node counts, and its lists. LRU batches are drained before. */
void host_read_node(struct node_state *state);

/**
 * struct node_process - an address space with one VMA of anonymous memory
 * @mm: On two CPUs.
 * @vma: From NODE_VMA_ADDRESS on.
 * @anon_vma: Its own.
 * @chain: And how that is found.
 */
struct node_process {
	struct mm_struct *mm;
	struct vm_area_struct vma;
	struct anon_vma anon_vma;
	struct anon_vma_chain chain;
};

extern struct node_process host_process;

/* Make it anew, with room for this many pages and none of them there. */
void host_new_process(unsigned long nr_pages);

/* Have a folio be at its page @index, as a fault would, not zeroed; false: there is none free. */
bool host_fault(unsigned long index, unsigned int order);

/* Where the entry of a page is, below which there is a table. */
pte_t *host_pte_of(unsigned long index);

void host_read_entries(unsigned long *ptes, unsigned long nr);
void host_read_process(struct node_state *state);

#endif
