// SPDX-License-Identifier: GPL-2.0-only
/*
 * What compaction may do to a node, and nothing else: pages move and keep all
 * they have, and whatever a frame is, it is one thing and is counted once.
 * Which frames it chooses is its own affair, but the same every time.
 */
#include <string.h>
#include "row.h"

/* Bits of an entry. Source: Intel SDM volume 3, table 4-20. */
#define PTE_PRESENT 1UL
#define PTE_DIRTY 0x40UL
#define PTE_PFN 0x000ffffffffff000UL

/* The frame of a page, counted from the node's first. */
static unsigned long frame_in(unsigned long pte)
{
	return ((pte & PTE_PFN) >> 12) - NODE_PFN;
}

static bool is_held(unsigned long index, unsigned int every)
{
	return every && index % every == 0;
}

static bool cannot_move(const struct row *row, unsigned long index)
{
	const struct compact_request *request = &row->request;

	return is_held(index, request->pinned_every) || is_held(index, request->mlocked_every) ||
	       is_held(index, request->locked_every);
}

/* --- What is mapped -------------------------------------------------------- */

static bool check_entry(struct row *row, unsigned long index, unsigned long pte)
{
	unsigned long frame = frame_in(pte);
	bool there = index < row->result.nr_mapped && !row->is_gone[index];

	if (!there)
		return !pte || frames_fail("page %lu was given back, its entry is %#lx", index,
					    pte);
	if (!(pte & PTE_PRESENT) || frame >= row->request.nr_pages)
		return frames_fail("page %lu is lost: its entry is %#lx", index, pte);
	if (row->pages[frame] != CONTENTS_ANY)
		return frames_fail("pages %ld and %lu are in one frame, %#lx",
				    (long)row->pages[frame], index, frame + NODE_PFN);
	row->pages[frame] = (int64_t)index;
	return true;
}

bool verify_entries(struct row *row, unsigned int variant, const unsigned long *ptes)
{
	frames_begin(row->name, variant);
	for (unsigned long frame = 0; frame < row->request.nr_pages; frame++)
		row->pages[frame] = CONTENTS_ANY;
	for (unsigned long index = 0; index < row->request.nr_pages; index++)
		if (!check_entry(row, index, ptes[index]))
			return false;
	return true;
}

/* Of a page that was moved, and maybe moved back, the dirty bit may be the descriptor's by now. */
static bool keeps_entry(const struct row *row, unsigned long index)
{
	unsigned long was = row->before[index], is = row->after[index];
	bool moved = frame_in(was) != frame_in(is);

	if (moved && cannot_move(row, index))
		return frames_fail("page %lu is held and has moved", index);
	if ((was & ~PTE_PFN & ~PTE_DIRTY) == (is & ~PTE_PFN & ~PTE_DIRTY))
		return true;
	return frames_fail("entry of page %lu is %#lx, was %#lx", index, is, was);
}

static bool keeps_descriptor(const struct row *row, unsigned long index)
{
	const struct node_layout *at = &row->frames.layout;
	unsigned long was = frame_in(row->before[index]), frame = frame_in(row->after[index]);
	const unsigned char *is = descriptor_of(NODE_PFN + frame);
	unsigned long own = ~at->links_mask;
	unsigned long flags = word_at(is, at->flags) & own;
	unsigned long had = word_at(row->was + was * DESCRIPTOR_BYTES, at->flags) & own;
	int refs = 1 + is_held(index, row->request.pinned_every);

	/* What says that it was written to is in one place or the other. */
	if (!(flags & at->dirty) && !(row->after[index] & PTE_DIRTY))
		return frames_fail("page %lu was written to, and nothing says so", index);
	flags = (flags & ~at->dirty) | (had & at->dirty);
	if (flags != had || !(flags & at->anon_exclusive) || !(flags & at->lru))
		return frames_fail("flags of page %lu are %#lx, were %#lx", index, flags, had);
	if (int_at(is, at->refcount) != refs || int_at(is, at->mapcount))
		return frames_fail("page %lu has %d references, expected %d, and %d mappings",
				    index, int_at(is, at->refcount), refs,
				    int_at(is, at->mapcount) + 1);
	if (word_at(is, at->mapping) != (row->frames.state.anon_vma | at->anon) ||
	    word_at(is, at->index) != row->frames.state.pgoff + index ||
	    word_at(is, at->private))
		return frames_fail("page %lu: mapping %#lx, index %#lx, private %#lx", index,
				    word_at(is, at->mapping), word_at(is, at->index),
				    word_at(is, at->private));
	return true;
}

static bool check_mapped(struct row *row, unsigned int variant, unsigned long *nr_moved)
{
	size_t wrong;

	if (!verify_entries(row, variant, row->after))
		return false;
	for (unsigned long index = 0; index < row->result.nr_mapped; index++) {
		if (row->is_gone[index])
			continue;
		if (!keeps_entry(row, index) || !keeps_descriptor(row, index))
			return false;
		*nr_moved += frame_in(row->before[index]) != frame_in(row->after[index]);
	}
	wrong = contents_first_wrong(contents_of(NODE_PFN), row->pages, row->request.nr_pages,
				     launch.nr_cpus);
	if (wrong == CONTENTS_FINE)
		return true;
	return frames_fail("page %ld in frame %#lx is not as it was written, from byte %zu on",
			    (long)row->pages[wrong], wrong + NODE_PFN,
			    contents_first_byte(contents_of(NODE_PFN + wrong),
						row->pages[wrong]));
}

/* --- Whose each frame is ---------------------------------------------------- */

static bool own_pages(struct row *row)
{
	for (unsigned long frame = 0; frame < row->request.nr_pages; frame++)
		if (row->pages[frame] != CONTENTS_ANY &&
		    !frames_own(&row->frames, frame, 1, OWNER_PAGE))
			return false;
	return true;
}

static bool own_huge(struct row *row, const unsigned long *pfns, unsigned long nr,
		     enum owner owner)
{
	for (unsigned long i = 0; i < nr; i++) {
		unsigned long frame = pfns[i] - NODE_PFN;

		if (!frames_own(&row->frames, frame, COMPACT_HUGE_PAGES, owner))
			return false;
		for (unsigned long j = 0; j < COMPACT_HUGE_PAGES; j++) {
			int refs = int_at(descriptor_of(pfns[i] + j), row->frames.layout.refcount);

			if (refs != !j)
				return frames_fail("frame %#lx of a huge page has %d references",
						   pfns[i] + j, refs);
		}
	}
	return true;
}

static bool check_frames(struct row *row, unsigned int variant)
{
	const struct compact_ops *ops = launch_ops(variant);
	const struct compact_result *result = &row->result;

	memset(row->frames.owner, 0, row->request.nr_pages);
	if (!own_pages(row) || !own_huge(row, row->ballast, result->nr_ballast, OWNER_BALLAST) ||
	    !own_huge(row, row->huge, result->nr_allocated, OWNER_HUGE) ||
	    !frames_check_lists(&row->frames))
		return false;
	for (unsigned long frame = 0; frame < row->request.nr_pages; frame++) {
		if (row->frames.owner[frame] != OWNER_PAGE && !frames_is_clean(&row->frames, frame))
			return false;
		if (frame % COMPACT_HUGE_PAGES == 0 && !ops->is_movable(NODE_PFN + frame))
			return frames_fail("pageblock of frame %#lx has another type",
					    frame + NODE_PFN);
	}
	return true;
}

/* --- What is counted -------------------------------------------------------- */

static bool check_counts(const struct row *row, unsigned long nr_moved)
{
	const struct compact_result *result = &row->result;
	const long *events = result->events;
	long nr_pages = (long)result->nr_mapped;

	for (unsigned long i = 0; i < result->nr_mapped; i++)
		nr_pages -= row->is_gone[i];
	if (!frames_same("managed frames", result->node.managed, (long)row->request.nr_pages) ||
	    !frames_same("pages of the process", result->node.rss, nr_pages) ||
	    !frames_same("pages mapped", result->node.nr_anon, nr_pages) ||
	    !frames_same("pages on LRU lists", result->node.nr_lru, nr_pages) ||
	    !frames_same("anonymous pages isolated", result->node.nr_isolated[0], 0) ||
	    !frames_same("file pages isolated", result->node.nr_isolated[1], 0) ||
	    !frames_same("references to the anon_vma", result->node.anon_vma_refs, 1) ||
	    !frames_same("stalls, failures and successes", events[COMPACT_COMPACTSTALL],
		  events[COMPACT_COMPACTFAIL] + events[COMPACT_COMPACTSUCCESS]))
		return false;
	if (events[COMPACT_PGMIGRATE_SUCCESS] < (long)nr_moved)
		return frames_fail("%lu pages are in other frames, %ld were migrated", nr_moved,
				    events[COMPACT_PGMIGRATE_SUCCESS]);
	/* Each that was moved was isolated before, and a frame was for it. */
	if (events[COMPACT_COMPACTISOLATED] < 2 * events[COMPACT_PGMIGRATE_SUCCESS])
		return frames_fail("%ld pages were migrated, and %ld isolated, with their targets",
				    events[COMPACT_PGMIGRATE_SUCCESS],
				    events[COMPACT_COMPACTISOLATED]);
	if (events[COMPACT_PGFREE] < events[COMPACT_PGMIGRATE_SUCCESS])
		return frames_fail("%ld pages were migrated, and %ld freed",
				    events[COMPACT_PGMIGRATE_SUCCESS], events[COMPACT_PGFREE]);
	return true;
}

/* --- What others go by -------------------------------------------------------- */

/*
 * While a zone is flagged as below its high watermark, the lists of a CPU are
 * flushed when they hold pcp_high_min pages, and the flag goes if the zone is
 * above: nr_pcp_high() and free_unref_page_commit(). The first request of a
 * node in which all can move is through two blocks at most. It drains these
 * lists behind each, and one of them has half of what has moved.
 */
static bool owes_high(const struct row *row)
{
	const struct compact_request *request = &row->request;
	const struct compact_result *result = &row->result;
	bool all_move = !request->pinned_every && !request->mlocked_every && !request->locked_every;
	unsigned long nr_moved = (unsigned long)result->events[COMPACT_PGMIGRATE_SUCCESS];
	/* Fewer are free while targets and the huge page are isolated. */
	unsigned long enough = result->high_wmark + 2 * COMPACT_HUGE_PAGES;

	return all_move && request->nr_huge == 1 && result->nr_allocated == 1 &&
	       nr_moved >= 2 * result->pcp_high_min && result->node.nr_free >= (long)enough;
}

static bool check_zone(const struct row *row)
{
	const struct compact_result *result = &row->result;

	if (result->is_below_high && owes_high(row))
		return frames_fail("zone is flagged as below its high watermark, %lu, of %ld free",
				    result->high_wmark, result->node.nr_free);
	if (result->nr_parked)
		return frames_fail("%lu free frames are in no list, where others look",
				    result->nr_parked);
	if ((row->request.isolating || row->request.disabling || row->request.leaving) &&
	    !result->nr_looks)
		return frames_fail("nobody looked for free frames: too few pages were copied");
	return true;
}

/* --- The same again ----------------------------------------------------------- */

static uint64_t mixed_in(uint64_t digest, uint64_t value)
{
	digest ^= value;
	return random_next(&digest);
}

static uint64_t digest_of(const struct row *row)
{
	uint64_t digest = row->result.nr_allocated;

	for (unsigned long frame = 0; frame < row->request.nr_pages; frame++) {
		digest = mixed_in(digest, (uint64_t)row->pages[frame]);
		digest = mixed_in(digest, row->frames.owner[frame]);
	}
	for (unsigned long i = 0; i < row->result.nr_allocated; i++)
		digest = mixed_in(digest, row->huge[i]);
	return digest;
}

static bool check_repeats(struct row *row, unsigned int variant)
{
	struct outcome *before = &row->outcome[variant];
	struct outcome now = { true, digest_of(row), { 0 }, row->result.nr_allocated };

	memcpy(now.events, row->result.events, sizeof(now.events));
	if (!before->is_known)
		*before = now;
	if (memcmp(now.events, before->events, sizeof(now.events)))
		return frames_fail("of the same node %ld pages were migrated, %ld the last time",
				    now.events[COMPACT_PGMIGRATE_SUCCESS],
				    before->events[COMPACT_PGMIGRATE_SUCCESS]);
	return now.digest == before->digest ||
	       frames_fail("other frames than the last time, of the same node");
}

bool verify_all(struct row *row, unsigned int variant)
{
	unsigned long nr_moved = 0;

	frames_begin(row->name, variant);
	return check_mapped(row, variant, &nr_moved) && check_frames(row, variant) &&
	       check_counts(row, nr_moved) && check_zone(row) && check_repeats(row, variant);
}
