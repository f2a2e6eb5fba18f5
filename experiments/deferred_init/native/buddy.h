/* SPDX-License-Identifier: GPL-2.0-only */
/* The free lists of a zone, walked and held against the oracle's blocks. */
#ifndef REAM_BUDDY_H
#define REAM_BUDDY_H

#include "deferred_init.h"
#include "program.h"

/**
 * struct block - a free block, as the oracle's file has it
 * @pfn: Its first frame.
 * @order: It has 1 << @order frames.
 * @type: Migration type of the list it is on.
 */
struct block {
	uint64_t pfn;
	uint32_t order;
	uint32_t type;
};

/**
 * struct memory_map - where descriptors lie
 * @start: The descriptor of @first_pfn.
 * @first_pfn: The first frame that has one here.
 * @nr_pages: How many frames have.
 */
struct memory_map {
	unsigned char *start;
	unsigned long first_pfn;
	unsigned long nr_pages;
};

#define DESCRIPTOR_BYTES 64UL	/* checked in glue.c */

/**
 * buddy_check() - compare a zone's free lists with what they must be
 * @who: Row and subject, to name in the report of a difference.
 * @zone: As glue.c reads it.
 * @map: Its descriptors.
 * @blocks: All blocks of the zone, ascending.
 * @nr_blocks: How many.
 * @ascending: Whether each list must be in the order of frames. One thread
 *	frees in that order, and each block goes to the tail of its list when
 *	its last page is freed. Of several threads any may be faster.
 *
 * Every link is followed, both ways. The pointers of each block found are then
 * set to itself: the map can be compared byte by byte.
 *
 * Return: whether the lists hold these blocks and nothing else; if not, the
 * first fault has been said on standard error.
 */
bool buddy_check(const char *who, const struct deferred_zone *zone,
		 const struct memory_map *map, const struct block *blocks, size_t nr_blocks,
		 bool ascending);

#endif
