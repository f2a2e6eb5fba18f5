// SPDX-License-Identifier: GPL-2.0-only
/*
 * What compaction may do to a node, and nothing else: pages move and keep all
 * they have, and whatever a frame is, it is one thing and is counted once.
 * Which frames it chooses is its own affair, but the same every time.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "lists.h"
#include "row.h"

/* Bits of an entry. Source: Intel SDM volume 3, table 4-20. */
#define PTE_PRESENT 1UL
#define PTE_DIRTY 0x40UL
#define PTE_PFN 0x000ffffffffff000UL

static const char *row_name;
static unsigned int of_variant;

__attribute__((format(printf, 1, 2)))
bool verify_fails(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: %s: ", row_name, launch.variant_names[of_variant]);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return false;
}

static void begin(const struct row *row, unsigned int variant)
{
	row_name = row->name;
	of_variant = variant;
}

static bool same(const char *what, long is, long expected)
{
	return is == expected || verify_fails("%s: %ld, expected %ld", what, is, expected);
}

/* The frame of a page, counted from the node's first. */
static unsigned long frame_in(unsigned long pte)
{
	return ((pte & PTE_PFN) >> 12) - COMPACT_PFN;
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
		return !pte || verify_fails("page %lu was given back, its entry is %#lx", index,
					    pte);
	if (!(pte & PTE_PRESENT) || frame >= row->request.nr_pages)
		return verify_fails("page %lu is lost: its entry is %#lx", index, pte);
	if (row->pages[frame] != CONTENTS_ANY)
		return verify_fails("pages %ld and %lu are in one frame, %#lx",
				    (long)row->pages[frame], index, frame + COMPACT_PFN);
	row->pages[frame] = (int64_t)index;
	return true;
}

bool verify_entries(struct row *row, unsigned int variant, const unsigned long *ptes)
{
	begin(row, variant);
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
		return verify_fails("page %lu is held and has moved", index);
	if ((was & ~PTE_PFN & ~PTE_DIRTY) == (is & ~PTE_PFN & ~PTE_DIRTY))
		return true;
	return verify_fails("entry of page %lu is %#lx, was %#lx", index, is, was);
}

static unsigned long word_at(const unsigned char *descriptor, unsigned long offset)
{
	unsigned long word;

	memcpy(&word, descriptor + offset, sizeof(word));
	return word;
}

static int int_at(const unsigned char *descriptor, unsigned long offset)
{
	int number;

	memcpy(&number, descriptor + offset, sizeof(number));
	return number;
}

static bool keeps_descriptor(const struct row *row, unsigned long index)
{
	const struct compact_layout *at = &row->layout;
	unsigned long was = frame_in(row->before[index]), frame = frame_in(row->after[index]);
	const unsigned char *is = descriptor_of(COMPACT_PFN + frame);
	unsigned long own = ~at->links_mask;
	unsigned long flags = word_at(is, at->flags) & own;
	unsigned long had = word_at(row->was + was * DESCRIPTOR_BYTES, at->flags) & own;
	int refs = 1 + is_held(index, row->request.pinned_every);

	/* What says that it was written to is in one place or the other. */
	if (!(flags & at->dirty) && !(row->after[index] & PTE_DIRTY))
		return verify_fails("page %lu was written to, and nothing says so", index);
	flags = (flags & ~at->dirty) | (had & at->dirty);
	if (flags != had || !(flags & at->anon_exclusive) || !(flags & at->lru))
		return verify_fails("flags of page %lu are %#lx, were %#lx", index, flags, had);
	if (int_at(is, at->refcount) != refs || int_at(is, at->mapcount))
		return verify_fails("page %lu has %d references, expected %d, and %d mappings",
				    index, int_at(is, at->refcount), refs,
				    int_at(is, at->mapcount) + 1);
	if (word_at(is, at->mapping) != (row->result.anon_vma | at->anon) ||
	    word_at(is, at->index) != row->result.pgoff + index || word_at(is, at->private))
		return verify_fails("page %lu: mapping %#lx, index %#lx, private %#lx", index,
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
	wrong = contents_first_wrong(contents_of(COMPACT_PFN), row->pages, row->request.nr_pages,
				     launch.nr_cpus);
	if (wrong == CONTENTS_FINE)
		return true;
	return verify_fails("page %ld in frame %#lx is not as it was written, from byte %zu on",
			    (long)row->pages[wrong], wrong + COMPACT_PFN,
			    contents_first_byte(contents_of(COMPACT_PFN + wrong),
						row->pages[wrong]));
}

/* --- Whose each frame is ---------------------------------------------------- */

bool verify_own(struct row *row, unsigned long frame, unsigned long nr, enum owner owner)
{
	unsigned long end = frame + nr;

	if (frame >= row->request.nr_pages || nr > row->request.nr_pages - frame || frame % nr)
		return verify_fails("%s: %lu frames from %#lx on", owner_names[owner], nr,
				    frame + COMPACT_PFN);
	for (; frame < end; frame++) {
		if (row->owner[frame])
			return verify_fails("frame %#lx is of %s and of %s", frame + COMPACT_PFN,
					    owner_names[row->owner[frame]], owner_names[owner]);
		row->owner[frame] = (unsigned char)owner;
	}
	return true;
}

static bool own_pages(struct row *row)
{
	for (unsigned long frame = 0; frame < row->request.nr_pages; frame++)
		if (row->pages[frame] != CONTENTS_ANY && !verify_own(row, frame, 1, OWNER_PAGE))
			return false;
	return true;
}

static bool own_huge(struct row *row, const unsigned long *pfns, unsigned long nr,
		     enum owner owner)
{
	for (unsigned long i = 0; i < nr; i++) {
		unsigned long frame = pfns[i] - COMPACT_PFN;

		if (!verify_own(row, frame, COMPACT_HUGE_PAGES, owner))
			return false;
		for (unsigned long j = 0; j < COMPACT_HUGE_PAGES; j++)
			if (int_at(descriptor_of(pfns[i] + j), row->layout.refcount) != !j)
				return verify_fails("frame %#lx of a huge page has %d references",
						    pfns[i] + j, int_at(descriptor_of(pfns[i] + j),
									row->layout.refcount));
	}
	return true;
}

/* What is not mapped has nothing left of what was. */
static bool is_clean(const struct row *row, unsigned long frame)
{
	const struct compact_layout *at = &row->layout;
	const unsigned char *is = descriptor_of(COMPACT_PFN + frame);
	enum owner owner = row->owner[frame];
	bool is_huge = owner == OWNER_HUGE || owner == OWNER_BALLAST;
	bool is_buddy = ((unsigned int)int_at(is, at->mapcount) & at->type_mask) == at->buddy_type;

	if (!owner)
		return verify_fails("frame %#lx is lost", frame + COMPACT_PFN);
	if (word_at(is, at->flags) & ~at->links_mask ||
	    (owner == OWNER_FREE && word_at(is, at->mapping)) ||
	    (!is_huge && int_at(is, at->refcount)))
		return verify_fails("frame %#lx is of %s: flags %#lx, mapping %#lx, %d references",
				    frame + COMPACT_PFN, owner_names[owner], word_at(is, at->flags),
				    word_at(is, at->mapping), int_at(is, at->refcount));
	if (is_buddy && owner != OWNER_FREE)
		return verify_fails("frame %#lx is of %s and looks free", frame + COMPACT_PFN,
				    owner_names[owner]);
	return true;
}

static bool check_frames(struct row *row, unsigned int variant)
{
	const struct compact_ops *ops = launch_ops(variant);
	const struct compact_result *result = &row->result;

	memset(row->owner, 0, row->request.nr_pages);
	if (!own_pages(row) || !own_huge(row, row->ballast, result->nr_ballast, OWNER_BALLAST) ||
	    !own_huge(row, row->huge, result->nr_allocated, OWNER_HUGE) || !lists_check(row))
		return false;
	for (unsigned long frame = 0; frame < row->request.nr_pages; frame++) {
		if (row->owner[frame] != OWNER_PAGE && !is_clean(row, frame))
			return false;
		if (frame % COMPACT_HUGE_PAGES == 0 && !ops->is_movable(COMPACT_PFN + frame))
			return verify_fails("pageblock of frame %#lx has another type",
					    frame + COMPACT_PFN);
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
	if (!same("managed frames", result->managed, (long)row->request.nr_pages) ||
	    !same("pages of the process", result->rss, nr_pages) ||
	    !same("pages mapped", result->nr_anon, nr_pages) ||
	    !same("pages on LRU lists", result->nr_lru, nr_pages) ||
	    !same("anonymous pages isolated", result->nr_isolated[0], 0) ||
	    !same("file pages isolated", result->nr_isolated[1], 0) ||
	    !same("references to the anon_vma", result->anon_vma_refs, 1) ||
	    !same("stalls, failures and successes", events[COMPACT_COMPACTSTALL],
		  events[COMPACT_COMPACTFAIL] + events[COMPACT_COMPACTSUCCESS]))
		return false;
	if (events[COMPACT_PGMIGRATE_SUCCESS] < (long)nr_moved)
		return verify_fails("%lu pages are in other frames, %ld were migrated", nr_moved,
				    events[COMPACT_PGMIGRATE_SUCCESS]);
	/* Each that was moved was isolated before, and a frame was for it. */
	if (events[COMPACT_COMPACTISOLATED] < 2 * events[COMPACT_PGMIGRATE_SUCCESS])
		return verify_fails("%ld pages were migrated, and %ld isolated, with their targets",
				    events[COMPACT_PGMIGRATE_SUCCESS],
				    events[COMPACT_COMPACTISOLATED]);
	if (events[COMPACT_PGFREE] < events[COMPACT_PGMIGRATE_SUCCESS])
		return verify_fails("%ld pages were migrated, and %ld freed",
				    events[COMPACT_PGMIGRATE_SUCCESS], events[COMPACT_PGFREE]);
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

	for (unsigned long frame = 0; frame < row->request.nr_pages; frame++)
		digest = mixed_in(digest, (uint64_t)row->pages[frame] * 8 + row->owner[frame]);
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
		return verify_fails("of the same node %ld pages were migrated, %ld the last time",
				    now.events[COMPACT_PGMIGRATE_SUCCESS],
				    before->events[COMPACT_PGMIGRATE_SUCCESS]);
	return now.digest == before->digest ||
	       verify_fails("other frames than the last time, of the same node");
}

bool verify_all(struct row *row, unsigned int variant)
{
	unsigned long nr_moved = 0;

	begin(row, variant);
	return check_mapped(row, variant, &nr_moved) && check_frames(row, variant) &&
	       check_counts(row, nr_moved) && check_repeats(row, variant);
}
