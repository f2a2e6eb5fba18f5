/* SPDX-License-Identifier: GPL-2.0-only */
/* Owners of all frames of a hosted node (optional/node_place.h), and checks of its lists. */
#ifndef REAM_FRAMES_H
#define REAM_FRAMES_H

#include <stdbool.h>
#include <string.h>
#include "launch.h"
#include "node_place.h"

#define DESCRIPTOR_BYTES 64UL	/* sizeof(struct page); frames_check_layout() checks it */

enum owner {
	OWNER_NOBODY, OWNER_PAGE, OWNER_KERNEL, OWNER_HUGE, OWNER_BALLAST, OWNER_FREE, OWNER_PCP
};

extern const char *const owner_names[];

/**
 * struct frames - all frames of a node
 * @nr: Number of frames.
 * @owner: Owner of each frame, an enum owner.
 * @layout: Layout of struct page in the variant.
 * @state: State of the node, as the variant's kernel reports it.
 */
struct frames {
	unsigned long nr;
	unsigned char *owner;
	struct node_layout layout;
	struct node_state state;
};

/* Addresses of the struct page and of the contents of a frame. */
static inline unsigned char *descriptor_of(unsigned long pfn)
{
	return (unsigned char *)NODE_MAP_ADDRESS + (pfn - NODE_TABLE_PFN) * DESCRIPTOR_BYTES;
}

static inline unsigned char *contents_of(unsigned long pfn)
{
	return (unsigned char *)NODE_RAM_ADDRESS + (pfn - NODE_TABLE_PFN) * 4096;
}

/* Map the struct pages of frames from NODE_TABLE_PFN on, and the contents of the node. */
static inline void frames_map_node(size_t nr_pages)
{
	launch_map((uintptr_t)descriptor_of(NODE_TABLE_PFN),
		   (NODE_PFN - NODE_TABLE_PFN + nr_pages) * DESCRIPTOR_BYTES, 0);
	launch_map((uintptr_t)contents_of(NODE_PFN), nr_pages * 4096, 0);
}

/* Read a field of a struct page. */
static inline unsigned long word_at(const unsigned char *descriptor, unsigned long offset)
{
	unsigned long word;

	memcpy(&word, descriptor + offset, sizeof(word));
	return word;
}

static inline int int_at(const unsigned char *descriptor, unsigned long offset)
{
	int number;

	memcpy(&number, descriptor + offset, sizeof(number));
	return number;
}

/* End the program if struct page does not have the size that this code expects. */
void frames_check_layout(const struct node_layout *layout);

/* Set the row and variant that frames_fail() reports from now on. */
void frames_begin(const char *row_name, unsigned int variant);

/* Report an error, with row and variant before it. Return: false. */
__attribute__((format(printf, 1, 2)))
bool frames_fail(const char *format, ...);

/* Compare a number with the expected one, and report a difference. */
bool frames_same(const char *what, long is, long expected);

/* Claim @nr frames for an owner. Fails if one has an owner. @frame counts from the node's first. */
bool frames_own(struct frames *frames, unsigned long frame, unsigned long nr, enum owner owner);

/* Walk and check all lists. Free frames get their owner here. */
bool frames_check_lists(struct frames *frames);

/* Check that an unmapped frame has an owner, and no stale flags or references. */
bool frames_is_clean(const struct frames *frames, unsigned long frame);

#endif
