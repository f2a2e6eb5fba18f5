/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside a hosted kernel: a node with the kernel's own allocator, as boot leaves
 * it (ream/node.o), functions that read its state (ream/node_state.o), and a
 * process that uses pages of it (ream/node_process.o).
 */
#ifndef REAM_NODE_H
#define REAM_NODE_H

#include <linux/gfp.h>
#include <linux/mm_types.h>
#include <linux/mmzone.h>
#include <linux/rmap.h>
#include "node_place.h"

/* Flags for user memory of this node only. */
#define HOST_NODE_GFP (GFP_HIGHUSER_MOVABLE | __GFP_THISNODE | __GFP_NOWARN)
/* The same, without reclaim, compaction or wakeups: only free memory is used. */
#define HOST_NODE_GFP_FREE (HOST_NODE_GFP & ~__GFP_RECLAIM)

static inline struct zone *host_zone(void)
{
	return &host_node(0)->node_zones[ZONE_NORMAL];
}

/* Boot the node with this many frames, all of them free. */
void host_boot_node(unsigned long nr_pages);

void host_read_layout(struct node_layout *layout);

/* Read the node's counters and lists, after draining the LRU batches. */
void host_read_node(struct node_state *state);

/**
 * struct node_process - an address space with one VMA of anonymous memory
 * @mm: The address space, which two CPUs use.
 * @vma: The VMA, from NODE_VMA_ADDRESS on.
 * @anon_vma: The anon_vma of @vma.
 * @chain: The link between @vma and @anon_vma.
 */
struct node_process {
	struct mm_struct *mm;
	struct vm_area_struct vma;
	struct anon_vma anon_vma;
	struct anon_vma_chain chain;
};

extern struct node_process host_process;

/* Make the process anew, with a VMA of this many pages, none of them present. */
void host_new_process(unsigned long nr_pages);

/* Map a new folio at page @index, as a fault does, but not zeroed. False if none is free. */
bool host_fault(unsigned long index, unsigned int order);

/* Address of the PTE of a page, whose page table must exist. */
pte_t *host_pte_of(unsigned long index);

void host_read_entries(unsigned long *ptes, unsigned long nr);
void host_read_process(struct node_state *state);

#endif
