// SPDX-License-Identifier: GPL-2.0-only
/*
 * What memory must hold after fork or unmap, and what else must have been done,
 * as the oracle says; all of it is compared.
 */
#include <stdio.h>
#include <string.h>
#include "row.h"

#define MAPCOUNT_OFFSET 16UL	/* of _large_mapcount; the oracle checks it */
#define PTE_PRESENT 1UL

/*
 * Where a batch ends shows in a few rows: in bits that its first entry gives
 * to all of the child's, and in folios that are half unmapped for a moment.
 * Both answers are right, but one kernel gives one answer in all rows: the
 * first row that tells them apart decides for the launch, by variant, and
 * for copying and unmapping apart.
 */
static enum batching batching[MOST_VARIANTS][2];

static bool say(const struct row *row, const char *subject, const char *what, size_t at,
		unsigned long is, unsigned long expected)
{
	return paging_say(row->name, subject, what, at, is, expected);
}

static bool same_entries(const struct row *row, const char *subject, const char *what,
			 const unsigned long *is, const struct image *expected)
{
	return paging_same_entries(row->name, subject, what, is, expected, row->request.nr_slots);
}

/*
 * A kernel that has no such counter must have left the words alone; then
 * they are given the value they would have, and all is compared alike.
 */
static bool supply_large_mapcounts(const struct row *row, const char *subject)
{
	const unsigned int *second = (const unsigned int *)row->seconds.start;

	for (size_t i = 0; i < row->seconds.bytes / sizeof(*second); i++) {
		size_t at = second[i] * DESCRIPTOR_BYTES + MAPCOUNT_OFFSET;
		unsigned int *word = (unsigned int *)(descriptor(PAGING_DATA_PFN) + at);
		unsigned int was = *(const unsigned int *)(row->pages.start + at);

		if (*word != was)
			return say(row, subject, "unused large mapcount", second[i], *word, was);
		*word = *(const unsigned int *)(row->pages_after.start + at);
	}
	return true;
}

static bool same_copies(const struct row *row, const char *subject)
{
	const unsigned long *pair = row->copies.words;

	for (size_t i = 0; i < image_nr_words(&row->copies); i += 2) {
		const unsigned char *is = contents(pair[i + 1]);
		const unsigned char *expected = contents(pair[i]);
		size_t at = 0;

		while (at < PAGE_BYTES && is[at] == expected[at])
			at++;
		if (at == PAGE_BYTES)
			continue;
		fprintf(stderr, "%s: %s: frame %lu is not the copy of frame %lu that it must be\n",
			row->name, subject, pair[i + 1], pair[i]);
		return say(row, subject, "its byte", at, is[at], expected[at]);
	}
	return true;
}

static bool same_counters(const struct row *row, const char *subject,
			  const struct fork_result *result)
{
	for (size_t i = 0; i < FORK_NR_COUNTERS; i++) {
		if (result->parent_rss[i] != row->parent_rss_after[i])
			return say(row, subject, "the parent's counter", i,
				   (unsigned long)result->parent_rss[i],
				   (unsigned long)row->parent_rss_after[i]);
		if (result->child_rss[i] != row->child_rss_after[i])
			return say(row, subject, "the child's counter", i,
				   (unsigned long)result->child_rss[i],
				   (unsigned long)row->child_rss_after[i]);
	}
	return !result->nr_stray ||
	       say(row, subject, "entries outside the VMA:", 0, result->nr_stray, 0);
}

static bool same_counts(const struct row *row, const char *subject,
			const struct fork_result *result, const long *expected)
{
	static const char *const names[NR_COUNTS] = {
		"folios freed:", "calls of deferred_split_folio():",
		"calls of swap_duplicate():", "calls of free_swap_and_cache():",
		"calls of folio_mark_dirty():", "calls of folio_mark_accessed():",
		"the result:",
	};
	const long counts[NR_COUNTS] = {
		(long)result->nr_freed, (long)result->nr_deferred,
		(long)result->nr_swap_duplicated, (long)result->nr_swap_freed,
		(long)result->nr_marked_dirty, (long)result->nr_accessed, result->error,
	};

	for (size_t i = 0; i < NR_COUNTS; i++)
		if (counts[i] != expected[i])
			return say(row, subject, names[i], 0, (unsigned long)counts[i],
				   (unsigned long)expected[i]);
	return true;
}

static const unsigned long *entries_unmapped(const struct row *row, const unsigned long **left)
{
	switch (row->operation) {
	case FORK_COPY:
		return NULL;
	case FORK_UNMAP_CHILD:
	case FORK_EXIT_CHILD:
		*left = row->child_is;
		return row->child.words;
	default:
		*left = row->parent_is;
		return row->parent.words;
	}
}

/* Every translation that is gone was flushed; where nobody counts, at once. */
static bool no_translation_stays(const struct row *row, const char *subject,
				 const struct fork_result *result)
{
	const unsigned long *left, *was = entries_unmapped(row, &left);
	bool unlinks = row->operation == FORK_UNMAP || row->operation == FORK_UNMAP_CHILD;
	bool exits = row->operation == FORK_EXIT || row->operation == FORK_EXIT_CHILD;
	bool any = false;

	if (exits && !result->exits_flush)
		return true;
	for (unsigned long i = 0; was && i < row->request.nr_slots; i++) {
		unsigned long address = row->request.address + i * PAGE_BYTES;

		if (!(was[i] & PTE_PRESENT) || left[i] == was[i])
			continue;
		any = true;
		if (address < result->flush_start)
			return say(row, subject, "the first address that is flushed, of entry", i,
				   result->flush_start, address);
		if (address >= result->flush_end)
			return say(row, subject, "the end of what is flushed, of entry", i,
				   result->flush_end, address + PAGE_BYTES);
	}
	return !any || !row->mixed || !unlinks || result->nr_flushes_of_vma ||
	       say(row, subject, "flushes before the end of a VMA with VM_MIXEDMAP:", 0, 0, 1);
}

static bool same_mm(const struct row *row, const char *subject, const struct fork_result *result)
{
	bool swapped = row->operation == FORK_COPY && row->counts[2];

	if (result->write_protects != row->write_protects)
		return say(row, subject, "the steps of mm->write_protect_seq:", 0,
			   result->write_protects, row->write_protects);
	if (result->on_mmlist != swapped)
		return say(row, subject, "whether the child is on the mmlist of swapoff:", 0,
			   result->on_mmlist, swapped);
	if (result->nr_lost_tables)
		return say(row, subject, "mm->pgtables_bytes, but for the tables there:", 0,
			   (unsigned long)result->nr_lost_tables, 0);
	return !result->left_pending ||
	       say(row, subject, "left in mm->tlb_flush_pending, or tlb_flush_batched:", 0,
		   (unsigned long)result->left_pending, 0);
}

static bool is_single(const struct row *row, const struct fork_result *result)
{
	if (row->child_single.start)
		return !memcmp(result->child, row->child_single.start, row->child_single.bytes);
	if (row->parent_single.start)
		return !memcmp(result->parent, row->parent_single.start,
			       row->parent_single.bytes);
	return (long)result->nr_deferred == row->counts_single[1] &&
	       (long)result->nr_marked_dirty == row->counts_single[4] &&
	       (long)result->nr_accessed == row->counts_single[5];
}

/* Which of the two answers this kernel has to give. */
static enum batching expected_batching(const struct row *row, unsigned int variant,
				       const struct fork_result *result)
{
	enum batching *known = &batching[variant][row->operation != FORK_COPY];
	bool tells = row->child_single.start || row->parent_single.start ||
		     memcmp(row->counts, row->counts_single, sizeof(row->counts));

	if (!tells)
		return BATCHING_YES;
	if (*known == BATCHING_UNKNOWN)
		*known = is_single(row, result) ? BATCHING_NO : BATCHING_YES;
	return *known;
}

bool expect_verify(const struct row *row, unsigned int variant)
{
	struct fork_result result = { .parent = row->parent_is, .child = row->child_is };
	const char *subject = launch.variant_names[variant];
	const struct fork_ops *ops = launch_ops(variant);
	const struct image *child = &row->child_after, *parent = &row->parent_after;
	const long *counts = row->counts;

	ops->read(&result);
	if (expected_batching(row, variant, &result) == BATCHING_NO) {
		parent = row->parent_single.start ? &row->parent_single : parent;
		child = row->child_single.start ? &row->child_single : child;
		counts = row->counts_single;
	}
	return same_entries(row, subject, "the parent's entry", row->parent_is, parent) &&
	       same_entries(row, subject, "the child's entry", row->child_is, child) &&
	       same_counters(row, subject, &result) &&
	       same_counts(row, subject, &result, counts) &&
	       same_mm(row, subject, &result) && no_translation_stays(row, subject, &result) &&
	       (ops->keeps_large_mapcount() || supply_large_mapcounts(row, subject)) &&
	       paging_same_pages(row->name, subject, &row->pages_after) &&
	       same_copies(row, subject);
}
