/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose each frame of a hosted node is (optional/node_place.h), and the lists that say so. */
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
 * @nr: How many.
 * @owner: What has each, an enum owner.
 * @layout: Of the variant's descriptors.
 * @state: What the variant's kernel says.
 */
struct frames {
	unsigned long nr;
	unsigned char *owner;
	struct node_layout layout;
	struct node_state state;
};

/* Where the descriptor or the contents of a frame are. */
static inline unsigned char *descriptor_of(unsigned long pfn)
{
	return (unsigned char *)NODE_MAP_ADDRESS + (pfn - NODE_TABLE_PFN) * DESCRIPTOR_BYTES;
}

static inline unsigned char *contents_of(unsigned long pfn)
{
	return (unsigned char *)NODE_RAM_ADDRESS + (pfn - NODE_TABLE_PFN) * 4096;
}

/* Map the descriptors of frames from NODE_TABLE_PFN on, and the contents of a node's. */
static inline void frames_map_node(size_t nr_pages)
{
	launch_map((uintptr_t)descriptor_of(NODE_TABLE_PFN),
		   (NODE_PFN - NODE_TABLE_PFN + nr_pages) * DESCRIPTOR_BYTES, 0);
	launch_map((uintptr_t)contents_of(NODE_PFN), nr_pages * 4096, 0);
}

/* A field of a descriptor. */
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

/* Ends the program if a descriptor has another size than this is written for. */
void frames_check_layout(const struct node_layout *layout);

/* Of which row and variant frames_fail() speaks from now on. */
void frames_begin(const char *row_name, unsigned int variant);

/* Say what is wrong, with row and variant before it; returns false. */
__attribute__((format(printf, 1, 2)))
bool frames_fail(const char *format, ...);

/* Whether a number is as expected; if not, it has been said. */
bool frames_same(const char *what, long is, long expected);

/* That @nr frames from one on, counted from the node's first, are of one owner and no other. */
bool frames_own(struct frames *frames, unsigned long frame, unsigned long nr, enum owner owner);

/* Walk all lists; frames that are free have their owner then. */
bool frames_check_lists(struct frames *frames);

/* A frame that no process maps has nothing left of what was, and somebody has it. */
bool frames_is_clean(const struct frames *frames, unsigned long frame);

#endif
