// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verify a node after unmapping: a page that was mapped is free, once, unless
 * it has another reference. A page that was not mapped is as before.
 */
#include <string.h>
#include "row.h"

/* Bits of an entry. Source: Intel SDM volume 3, table 4-20. */
#define PTE_PRESENT 1UL
#define PTE_PFN 0x000ffffffffff000UL

/* The frame of a page, counted from the node's first. */
static unsigned long frame_in(unsigned long pte)
{
	return ((pte & PTE_PFN) >> 12) - NODE_PFN;
}

static bool is_held(const struct row *row, unsigned long index)
{
	unsigned int every = row->request.held_every;

	return every && (index >> row->request.order) % every == 0;
}

static bool own_page(struct row *row, unsigned long index)
{
	unsigned long pte = row->before[index];

	if (!(pte & PTE_PRESENT))
		return frames_fail("page %lu is not mapped: its entry is %#lx", index, pte);
	return frames_own(&row->frames, frame_in(pte), 1, OWNER_PAGE);
}

bool verify_before(struct row *row, unsigned int variant)
{
	struct frames *frames = &row->frames;

	frames_begin(row->name, variant);
	memset(frames->owner, 0, frames->nr);
	for (unsigned long index = 0; index < row->request.nr_mapped; index++)
		if (!own_page(row, index))
			return false;
	if (!frames_check_lists(frames))
		return false;
	/* Nothing else was allocated but page tables. */
	for (unsigned long frame = 0; frame < frames->nr; frame++)
		if (!frames->owner[frame])
			frames->owner[frame] = OWNER_KERNEL;
	memcpy(row->owner_before, frames->owner, frames->nr);
	return true;
}

/* A page with another reference is no longer mapped, and can be reclaimed. */
static bool check_held(struct row *row, unsigned long index)
{
	unsigned long pfn = frame_in(row->before[index]) + NODE_PFN;
	const struct node_layout *at = &row->frames.layout;
	const unsigned char *is = descriptor_of(pfn);
	int refs = index & ((1UL << row->request.order) - 1) ? 0 : 1;

	if (int_at(is, at->refcount) != refs || int_at(is, at->mapcount) != -1)
		return frames_fail("page %lu is held: %d references, expected %d, %d mappings",
				   index, int_at(is, at->refcount), refs,
				   int_at(is, at->mapcount) + 1);
	return frames_own(&row->frames, pfn - NODE_PFN, 1, OWNER_PAGE);
}

static bool check_pages(struct row *row, long *nr_held)
{
	for (unsigned long index = 0; index < row->request.nr_mapped; index++) {
		if (row->after[index])
			return frames_fail("page %lu was unmapped, its entry is %#lx", index,
					   row->after[index]);
		if (!is_held(row, index))
			continue;
		if (!check_held(row, index))
			return false;
		++*nr_held;
	}
	return frames_check_lists(&row->frames);
}

static bool check_frame(struct row *row, unsigned long frame)
{
	unsigned char *owner = &row->frames.owner[frame];
	enum owner was = row->owner_before[frame];

	if (was == OWNER_KERNEL) {
		if (*owner)
			return frames_fail("frame %#lx is a page table, and of %s",
					   frame + NODE_PFN, owner_names[*owner]);
		*owner = OWNER_KERNEL;
	}
	return *owner == OWNER_PAGE || *owner == OWNER_KERNEL ||
	       frames_is_clean(&row->frames, frame);
}

static bool check_counts(const struct row *row, long nr_held)
{
	const struct freeing_result *result = &row->result;
	long nr_freed = (long)row->request.nr_mapped - nr_held;

	if (!frames_same("managed frames", result->node.managed, (long)row->frames.nr) ||
	    !frames_same("pages of the process", result->node.rss, 0) ||
	    !frames_same("pages mapped", result->node.nr_anon, 0) ||
	    !frames_same("pages on LRU lists", result->node.nr_lru, nr_held) ||
	    !frames_same("anonymous pages isolated", result->node.nr_isolated[0], 0) ||
	    !frames_same("file pages isolated", result->node.nr_isolated[1], 0) ||
	    !frames_same("references to the anon_vma", result->node.anon_vma_refs, 1))
		return false;
	/* The gather's own pages come and go, too. */
	if (result->nr_freed < nr_freed)
		return frames_fail("%ld pages were freed, %ld counted", nr_freed,
				   result->nr_freed);
	return result->nr_flushes || frames_fail("no translation was flushed");
}

static bool check_repeats(struct row *row, unsigned int variant)
{
	uint64_t digest = 1;

	for (unsigned long frame = 0; frame < row->frames.nr; frame++) {
		digest ^= row->frames.owner[frame];
		random_next(&digest);
	}
	if (!row->digest[variant])
		row->digest[variant] = digest;
	return row->digest[variant] == digest ||
	       frames_fail("other frames than the last time, of the same node");
}

bool verify_after(struct row *row, unsigned int variant)
{
	long nr_held = 0;

	frames_begin(row->name, variant);
	memset(row->frames.owner, 0, row->frames.nr);
	if (!check_pages(row, &nr_held))
		return false;
	for (unsigned long frame = 0; frame < row->frames.nr; frame++)
		if (!check_frame(row, frame))
			return false;
	return check_counts(row, nr_held) && check_repeats(row, variant);
}
