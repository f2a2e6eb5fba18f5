/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A node that is made as boot leaves it: its addresses, and the state that is
 * read of it. The addresses are the same for every variant, because struct pages
 * and page table entries contain addresses and PFNs. Both sides include this.
 */
#ifndef REAM_NODE_PLACE_H
#define REAM_NODE_PLACE_H

/* Frames from NODE_TABLE_PFN on belong to no node. Those of the node follow them. */
#define NODE_TABLE_PFN 0x1f8000UL
#define NODE_PFN 0x200000UL			/* first frame of the node; section aligned */
#define NODE_MAP_ADDRESS 0x200000000000UL	/* struct page of NODE_TABLE_PFN */
#define NODE_RAM_ADDRESS 0x300000000000UL	/* contents of NODE_TABLE_PFN */
#define NODE_VMA_ADDRESS 0x10000000000UL	/* where the process maps its pages */

/* The allocator accesses the buddy of any block, so the buddy must lie within the node. */
#define NODE_STEP 1024UL			/* MAX_ORDER_NR_PAGES; node.c checks it */
#define NODE_BLOCK_ORDER 9			/* pageblock_order */

enum node_list_kind { NODE_FREE, NODE_PCP, NODE_LRU };

/**
 * struct node_list - one list that frames of the node may be on
 * @head: Its struct list_head.
 * @kind: Kind of the list.
 * @order: Order of the blocks on it; 0 for an LRU list.
 * @group: Lists with the same group have a common counter: free lists of one
 *	order, lists of one CPU, or LRU lists of the node.
 */
struct node_list {
	const void *head;
	enum node_list_kind kind;
	unsigned int order;
	unsigned int group;
};

/**
 * struct node_layout - layout of struct page in this kernel
 * @page_bytes: Size of struct page. The members after it are offsets in it.
 * @links_mask: Bits of flags that hold the section, node and zone of a frame.
 * @lru, @dirty, @anon_exclusive, @mlocked, @unevictable, @locked: Single bits
 *	of flags.
 * @type_mask: Bits of page_type that hold the type.
 * @buddy_type: Type of the head of a free block.
 * @anon: Bit of mapping which means that it is an anon_vma.
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
 * struct node_state - state of the node, as the kernel counts it
 * @managed: Number of frames that the allocator manages.
 * @nr_free: Number of free frames, without those on per-CPU lists.
 * @nr_lru: Number of pages on all LRU lists of the zone.
 * @nr_isolated: Numbers of isolated pages of the node, anonymous and file.
 * @nr_anon: Number of mapped anonymous pages.
 * @lists: All lists that a frame may be on.
 * @nr_lists: Number of @lists.
 * @free_area_nr: The zone's number of free blocks, by order.
 * @pcp_count: Number of frames on the lists of each CPU.
 * @nr_orders: Number of orders of free blocks.
 * @rss: Anonymous RSS of the process, or -1 if another RSS counter is not 0.
 * @anon_vma_refs: References to the anon_vma. The VMA itself holds one.
 * @anon_vma: Address of the anon_vma.
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
