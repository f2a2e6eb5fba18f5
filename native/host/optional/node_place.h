/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A node that is made as a boot leaves it: where it lies, the same for every
 * variant, since descriptors and page table entries hold addresses and frame
 * numbers; and what is read of it. Included by both sides.
 */
#ifndef REAM_NODE_PLACE_H
#define REAM_NODE_PLACE_H

/* Frames from NODE_TABLE_PFN on are no node's; those of the node come behind them. */
#define NODE_TABLE_PFN 0x1f8000UL
#define NODE_PFN 0x200000UL			/* the node's first; section aligned */
#define NODE_MAP_ADDRESS 0x200000000000UL	/* descriptor of NODE_TABLE_PFN */
#define NODE_RAM_ADDRESS 0x300000000000UL	/* contents of NODE_TABLE_PFN */
#define NODE_VMA_ADDRESS 0x10000000000UL	/* where the process maps its pages */

/* The allocator looks for the buddy of any block: at the node's end it must be within. */
#define NODE_STEP 1024UL			/* MAX_ORDER_NR_PAGES; node.c checks it */
#define NODE_BLOCK_ORDER 9			/* pageblock_order */

enum node_list_kind { NODE_FREE, NODE_PCP, NODE_LRU };

/**
 * struct node_list - one list that frames of the node may be on
 * @head: Its struct list_head.
 * @kind: Whose it is.
 * @order: Of what is on it; 0 for an LRU.
 * @group: Lists with the same one are counted together: of one order that is
 *	free, of one CPU, of the node's LRUs.
 */
struct node_list {
	const void *head;
	enum node_list_kind kind;
	unsigned int order;
	unsigned int group;
};

/**
 * struct node_layout - how this kernel lays out what is looked at
 * @page_bytes: Of a descriptor; the others are offsets in it.
 * @links_mask: Bits of flags that say where a frame is, not how.
 * @lru, @dirty, @anon_exclusive, @mlocked, @unevictable, @locked: Single bits
 *	of flags.
 * @type_mask: Bits of page_type that say which it is.
 * @buddy_type: These, of the head of a free block.
 * @anon: Bit of mapping: it is an anon_vma.
 */
struct node_layout {
	unsigned long page_bytes;
	unsigned long flags, links, mapping, index, private, mapcount, refcount;
	unsigned long links_mask;
	unsigned long lru, dirty, anon_exclusive, mlocked, unevictable, locked;
	unsigned int type_mask, buddy_type;
	unsigned long anon;
};

/**
 * struct node_state - what the kernel says of the node
 * @managed: Frames that the allocator has.
 * @nr_free: Its number of free ones, those on per-CPU lists apart.
 * @nr_lru: What the zone counts on LRU lists, all of them.
 * @nr_isolated: What the node counts as isolated, anonymous and file.
 * @nr_anon: What it counts as mapped.
 * @lists: All lists that a frame may be on.
 * @nr_lists: How many.
 * @free_area_nr: By order, how many blocks the zone counts.
 * @pcp_count: By CPU, how many frames its lists are said to hold.
 * @nr_orders: Of free blocks.
 * @rss: What the process counts, or -1 if it counts anything else, too.
 * @anon_vma_refs: References to its anon_vma; 1 is the VMA's own.
 * @anon_vma: Address of that.
 * @pgoff: Index of the process's first page.
 */
struct node_state {
	long managed, nr_free, nr_lru, nr_isolated[2], nr_anon;
	const struct node_list *lists;
	unsigned long nr_lists;
	const unsigned long *free_area_nr;
	const long *pcp_count;
	unsigned int nr_orders;
	long rss, anon_vma_refs;
	unsigned long anon_vma, pgoff;
};

#endif
