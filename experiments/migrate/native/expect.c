// SPDX-License-Identifier: GPL-2.0-only
/*
 * What memory must hold after a migration, as the oracle says; all of it is
 * compared: descriptors, entries, counters, lists, and every byte of pages.
 *
 * Three things are a kernel's own affair. How much it unmaps before it moves
 * that shows in what is left on the list: the oracle gives an answer for each
 * such limit, and a kernel has to keep to one of them throughout a launch. If
 * it goes on with the next pages before it tries the last ones again, the same
 * is left in another order. And a kernel that removes a large folio's entries
 * one by one finds it partially mapped on the way, and notes that it might be
 * split; one that removes them all at once does not: either will do, folio by
 * folio. How often it was one of the last two is told in the end of the launch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "contents.h"
#include "expect.h"
#include "memory.h"
#include "plan.h"
#include "queue.h"

#define MOST_ANSWERS 3

/* Of enum migrate_mode. */
#define MIGRATE_ASYNC 0

enum number {
	NUMBER_RET,
	NUMBER_SUCCEEDED,
	NUMBER_EVENTS,
	NUMBER_STATS = NUMBER_EVENTS + MIGRATE_NR_EVENTS,
	NUMBER_RSS = NUMBER_STATS + MIGRATE_NR_STATS * MIGRATE_NR_NODES,
	NUMBER_NOTED = NUMBER_RSS + MIGRATE_MOST_MAPPINGS,
	NUMBER_NR_ANON = NUMBER_NOTED + MIGRATE_MOST_MAPPINGS,
	NUMBER_ASKED = NUMBER_NR_ANON + MIGRATE_NR_ORDERS,
	NUMBER_PUT,
	NUMBER_FREED,
	NUMBER_ADDED,
	NUMBER_DRAINED,
	NUMBER_FAILED_READS,
	NUMBER_LEAST_BATCH_FLUSHES,
	NUMBER_MOST_BATCH_FLUSHES,
	NUMBER_LEAST_SINGLE_FLUSHES,
	NUMBER_MOST_SINGLE_FLUSHES,
	NR_NUMBERS
};

/* One of the ways in which memory may be left. */
struct answer {
#define ROW PLAN_MEMBER
#include "answer.def"
};

static const struct plan_field fields[] = {
#define ROW(...) PLAN_ENTRY(struct answer, __VA_ARGS__)
#include "answer.def"
	{ .key = NULL },
};

/* Place of what may differ, in struct page; the oracle checks it. */
#define LRU_OFFSET 8UL
#define LINK_BYTES 16UL

/* Of a row that is open. */
struct answers {
	struct answer *answers;
	size_t nr;
	unsigned char *kept;	/* descriptors of both sides, as the kernel left them */
};

/*
 * By variant, over all rows of a launch. @excluded: answers that it has once not
 * given where a provider copies; without one, every kernel has the stock limit
 * of a batch, which is that of the first answer. @nr_not_left: folios that it
 * did not leave to be split although the oracle does; there are none in a
 * kernel that removes entries one by one.
 */
static struct {
	unsigned int excluded;
	unsigned long nr_not_left;
	unsigned long nr_reordered;
	unsigned long nr_offloaded;
} known[MOST_VARIANTS];

unsigned long expect_nr_reordered(unsigned int variant)
{
	return known[variant].nr_reordered;
}

unsigned long expect_nr_offloaded(unsigned int variant)
{
	return known[variant].nr_offloaded;
}

unsigned long expect_nr_not_left(unsigned int variant)
{
	return known[variant].nr_not_left;
}

void expect_open(struct row *row)
{
	struct answers *its = calloc(1, sizeof(*its));

	if (!its)
		die(RUNNER_NO_RESOURCE, "no memory for what is expected");
	its->answers = plan_read(row->after, fields, sizeof(*its->answers), &its->nr);
	its->kept = malloc(2 * row->request.nr_pages * DESCRIPTOR_BYTES);
	if (!its->nr || its->nr > MOST_ANSWERS)
		die(RUNNER_USAGE, "%s: %zu answers", row->name, its->nr);
	if (!its->kept)
		die(RUNNER_NO_RESOURCE, "no memory for a copy of descriptors");
	for (size_t i = 0; i < its->nr; i++)
		plan_map_images(fields, &its->answers[i]);
	row->expected = its;
}

void expect_close(struct row *row)
{
	struct answers *its = row->expected;

	for (size_t i = 0; i < its->nr; i++)
		plan_unmap_images(fields, &its->answers[i]);
	free(its->answers);
	free(its->kept);
	free(its);
}

/* --- What differs, said of one answer ------------------------------------ */

/* Of a kernel's own, see above. */
struct affairs {
	unsigned long nr_not_left;
	unsigned long nr_reordered;
};

/**
 * struct look - one comparison of memory with one answer
 * @row: The row.
 * @subject: The variant's name.
 * @result: What it said.
 * @expected: The answer.
 * @quiet: Nothing is said of what differs: another answer may be right.
 * @any_order: What is left may be in another order.
 * @seen: What is a kernel's own affair, as far as this answer goes.
 */
struct look {
	const struct row *row;
	const char *subject;
	const struct migrate_result *result;
	const struct answer *expected;
	bool quiet;
	bool any_order;
	struct affairs *seen;
};

static bool say(const struct look *look, const char *what, size_t at, unsigned long is,
		unsigned long expected)
{
	if (!look->quiet)
		fprintf(stderr, "%s: %s: %s %zu is %#lx, the oracle says %#lx\n",
			look->row->name, look->subject, what, at, is, expected);
	return false;
}

static bool same_number(const struct look *look, const char *what, size_t at, long is,
			enum number number)
{
	long expected = look->expected->numbers[number + at];

	return is == expected ||
	       say(look, what, at, (unsigned long)is, (unsigned long)expected);
}

static bool within(const struct look *look, const char *what, long is, enum number least,
		   enum number most)
{
	const long *numbers = look->expected->numbers;

	if (is < numbers[least])
		return say(look, what, 0, (unsigned long)is, (unsigned long)numbers[least]);
	return is <= numbers[most] ||
	       say(look, what, 1, (unsigned long)is, (unsigned long)numbers[most]);
}

static bool same_counts(const struct look *look)
{
	const struct migrate_result *result = look->result;
	bool same = same_number(look, "the return value", 0, result->ret, NUMBER_RET) &&
		    same_number(look, "pages said to be moved:", 0,
				(long)result->nr_succeeded, NUMBER_SUCCEEDED) &&
		    same_number(look, "calls of get_new_folio():", 0, result->nr_asked,
				NUMBER_ASKED) &&
		    same_number(look, "calls of put_new_folio():", 0, result->nr_put,
				NUMBER_PUT) &&
		    same_number(look, "folios freed:", 0, result->nr_freed, NUMBER_FREED) &&
		    same_number(look, "calls of folio_add_lru():", 0, result->nr_added,
				NUMBER_ADDED) &&
		    same_number(look, "calls of lru_add_drain():", 0, result->nr_drained,
				NUMBER_DRAINED);

	for (size_t i = 0; same && i < MIGRATE_NR_EVENTS; i++)
		same = same_number(look, "the counter of /proc/vmstat", i, result->events[i],
				   NUMBER_EVENTS);
	for (size_t i = 0; same && i < MIGRATE_NR_STATS * MIGRATE_NR_NODES; i++)
		same = same_number(look, "the nodes' statistic", i,
				   result->stats[i / MIGRATE_NR_NODES][i % MIGRATE_NR_NODES],
				   NUMBER_STATS);
	for (size_t i = 0; same && i < look->row->request.nr_mappings; i++)
		same = same_number(look, "MM_ANONPAGES of address space", i, result->rss[i],
				   NUMBER_RSS);
	for (size_t i = 0; same && i < MIGRATE_NR_ORDERS; i++)
		same = same_number(look, "large anonymous folios of order", i, result->nr_anon[i],
				   NUMBER_NR_ANON);
	if (same && result->nr_early_reads)
		same = say(look, "pages read while a flush of their entries is pending:", 0,
			   (unsigned long)result->nr_early_reads, 0);
	if (same && result->nr_dma_mapped)
		same = say(look, "ranges mapped for an engine:", 0,
			   (unsigned long)result->nr_dma_mapped, 0);
	if (same && result->anon_vma_refs != 1)
		same = say(look, "references to the anon_vma:", 0,
			   (unsigned long)result->anon_vma_refs, 1);
	/* That it is told once more than it needs to be costs it a flush, and no more. */
	for (size_t i = 0; same && i < look->row->request.nr_mappings; i++)
		if (look->expected->numbers[NUMBER_NOTED + i] && !result->noted[i])
			same = say(look, "tlb_flush_batched of address space", i, 0, 1);
	return same &&
	       same_number(look, "calls of memory_failure_queue():", 0,
			   result->nr_failed_reads, NUMBER_FAILED_READS) &&
	       within(look, "calls of arch_tlbbatch_flush(), bound", result->nr_batch_flushes,
		      NUMBER_LEAST_BATCH_FLUSHES, NUMBER_MOST_BATCH_FLUSHES) &&
	       within(look, "calls of flush_tlb_mm_range(), bound", result->nr_single_flushes,
		      NUMBER_LEAST_SINGLE_FLUSHES, NUMBER_MOST_SINGLE_FLUSHES);
}

static bool same_entries(const struct look *look, const char *what, const unsigned long *is,
			 const struct image *expected)
{
	const unsigned long *entry = expected->words;

	if (!memcmp(is, entry, expected->bytes))
		return true;
	for (size_t i = 0; i < image_nr_words(expected); i++)
		if (is[i] != entry[i])
			return say(look, what, i, is[i], entry[i]);
	return true;
}

static bool same_tables(const struct look *look)
{
	for (unsigned int i = 0; i < look->row->request.nr_mappings; i++)
		if (!same_entries(look, i ? "the second address space's entry" : "the entry",
				  look->result->mapping[i].ptes, &look->expected->ptes[i]) ||
		    !same_entries(look, "the middle entry", look->result->mapping[i].pmds,
				  &look->expected->pmds[i]))
			return false;
	return true;
}

static bool same_words(const struct look *look, const struct image *pairs)
{
	const unsigned long *pair = pairs->words;

	for (size_t i = 0; i < image_nr_words(pairs); i += 2) {
		unsigned long is = *(const unsigned long *)pair[i];

		if (is != pair[i + 1])
			return say(look, "the word of a list's head at", pair[i], is,
				   pair[i + 1]);
	}
	return true;
}

static bool same_descriptors(const struct look *look, const char *what, unsigned long pfn,
			     const struct image *expected)
{
	const unsigned char *is = memory_descriptor(pfn);
	size_t at = arena_first_difference(is, expected->bytes, expected, launch.nr_cpus);
	size_t word = at & ~7UL;

	if (at == ARENA_NO_DIFFERENCE)
		return true;
	if (!look->quiet)
		fprintf(stderr, "%s: %s: %s: byte %zu of descriptor %zu differs\n",
			look->row->name, look->subject, what, at % DESCRIPTOR_BYTES,
			at / DESCRIPTOR_BYTES);
	return say(look, "that word, of descriptor", at / DESCRIPTOR_BYTES,
		   *(const unsigned long *)(is + word),
		   *(const unsigned long *)(expected->start + word));
}

static bool same_contents(const struct look *look)
{
	const int64_t *page = (const int64_t *)look->expected->contents.start;
	size_t nr = look->row->request.nr_pages;

	for (unsigned int side = 0; page && side < 2; side++, page += nr) {
		const unsigned char *start =
			memory_contents(side ? MIGRATE_DST_PFN : MIGRATE_SRC_PFN);
		size_t wrong = contents_first_wrong(start, page, nr, launch.nr_cpus);

		if (wrong == CONTENTS_FINE)
			continue;
		start += wrong * PAGE_BYTES;
		return say(look, side ? "byte of a target's frame, which should hold page" :
					"byte of a source's frame, which should hold page",
			   (size_t)page[wrong], contents_first_byte(start, page[wrong]),
			   PAGE_BYTES);
	}
	return true;
}

/* --- Folios that are, or are not, to be split later ---------------------- */

static bool settle(const struct look *look)
{
	const struct image *src = &look->expected->src, *dst = &look->expected->dst;
	const struct row *row = look->row;
	long nr_src, nr_dst;

	if (!row->deferrable.bytes)
		return same_words(look, &look->expected->queue_words);
	/* Links are looked at before any is changed. */
	nr_src = queue_settle(row, MIGRATE_SRC_PFN, src, false);
	nr_dst = queue_settle(row, MIGRATE_DST_PFN, dst, false);
	if (nr_src < 0 || nr_dst < 0 ||
	    !queue_settle_waiting(row, MIGRATE_SRC_PFN, src, false) ||
	    !queue_settle_waiting(row, MIGRATE_DST_PFN, dst, false))
		return say(look, "a broken link of the queue of folios to split", 0, 0, 0);
	if (!nr_src && !nr_dst)
		return same_words(look, &look->expected->queue_words);
	queue_settle(row, MIGRATE_SRC_PFN, src, true);
	queue_settle(row, MIGRATE_DST_PFN, dst, true);
	queue_settle_waiting(row, MIGRATE_SRC_PFN, src, true);
	queue_settle_waiting(row, MIGRATE_DST_PFN, dst, true);
	look->seen->nr_not_left = (unsigned long)(nr_src + nr_dst);
	return true;
}

/* --- What is left on the caller's list ------------------------------------ */

/* Of the first call: where there are several, only that one leaves folios. */
static unsigned long *list_head(void)
{
	return (unsigned long *)MIGRATE_LIST_ADDRESS;
}

/* The page number of the head that a link is in; or one that is none. */
static size_t page_of(const unsigned long *link)
{
	return ((size_t)link - LRU_OFFSET - (size_t)memory_descriptor(MIGRATE_SRC_PFN)) /
	       DESCRIPTOR_BYTES;
}

static bool is_among(size_t page, const unsigned long *pages, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (pages[i] == page)
			return true;
	return false;
}

/*
 * The same folios in another order: the kernel has gone on with the next batch
 * before it tried those again. Their links become the answer's.
 */
static bool settle_list(const struct look *look)
{
	const struct image *left = &look->expected->left;
	const unsigned long *page = left->words;
	const unsigned long *link = (const unsigned long *)list_head()[0];
	size_t nr = image_nr_words(left), nr_found = 0;
	bool in_order = true;

	for (; link != list_head(); link = (const unsigned long *)link[0], nr_found++) {
		if (!queue_in_memory(look->row, (unsigned long)link) || nr_found == nr ||
		    !is_among(page_of(link), page, nr))
			return say(look, "what is not to be on the caller's list, page",
				   page_of(link), nr_found, nr);
		if (((const unsigned long *)link[0])[1] != (unsigned long)link)
			return say(look, "a broken link of the caller's list, page",
				   page_of(link), 0, 0);
		in_order = in_order && page_of(link) == page[nr_found];
	}
	if (nr_found != nr)
		return say(look, "folios on the caller's list:", 0, nr_found, nr);
	if (in_order || !look->any_order)
		return same_words(look, &look->expected->words);
	for (size_t i = 0; i < nr; i++) {
		size_t at = page[i] * DESCRIPTOR_BYTES + LRU_OFFSET;

		memcpy(memory_descriptor(MIGRATE_SRC_PFN) + at, look->expected->src.start + at,
		       LINK_BYTES);
	}
	look->seen->nr_reordered = 1;
	return true;
}

/* --- Several answers ------------------------------------------------------ */

/* Comparing with one changes descriptors; the next one needs them as they were. */
static void keep_descriptors(unsigned char *kept, size_t bytes, bool restore)
{
	static const unsigned long sides[] = { MIGRATE_SRC_PFN, MIGRATE_DST_PFN };

	for (unsigned int i = 0; i < 2; i++, kept += bytes) {
		unsigned char *is = memory_descriptor(sides[i]);

		memcpy(restore ? is : kept, restore ? kept : is, bytes);
	}
}

/* --- All of it ------------------------------------------------------------ */

static bool is_as(const struct look *look)
{
	return same_counts(look) && same_tables(look) &&
	       settle_list(look) && settle(look) &&
	       same_descriptors(look, "of the sources", MIGRATE_SRC_PFN,
				&look->expected->src) &&
	       same_descriptors(look, "of the targets", MIGRATE_DST_PFN,
				&look->expected->dst) &&
	       same_contents(look);
}

/* Which answers memory is as, a bit each; what was seen with the last of them. */
static unsigned int fitting(struct look *look, unsigned char *kept, struct affairs *seen)
{
	const struct answers *its = look->row->expected;
	size_t bytes = its->answers[0].src.bytes;
	unsigned int fit = 0;

	for (unsigned int i = 0; i < its->nr; i++) {
		struct affairs own = { 0 };

		keep_descriptors(kept, bytes, true);
		look->expected = &its->answers[i];
		look->seen = &own;
		/* All that is said is of the answer that is looked at last. */
		look->quiet = !look->any_order || i + 1 < its->nr || fit;
		if (is_as(look)) {
			fit |= 1U << i;
			*seen = own;
		}
	}
	return fit;
}

bool expect_verify(const struct row *row, unsigned int variant, enum offload_engine engine,
		   const struct migrate_result *result)
{
	unsigned int excluded = engine == OFFLOAD_SERIAL ? ~1U : known[variant].excluded;
	/*
	 * In other modes than MIGRATE_ASYNC a kernel may try folios again when it has moved all
	 * batches. They are then in an order that may be another limit's by chance.
	 */
	bool tried_again = engine != OFFLOAD_SERIAL && row->request.mode != MIGRATE_ASYNC;
	struct look look = {
		.row = row, .subject = launch.variant_names[variant], .result = result,
	};
	const struct answers *its = row->expected;
	size_t bytes = its->answers[0].src.bytes;
	struct affairs seen = { 0 };
	unsigned int fit;

	keep_descriptors(its->kept, bytes, false);
	fit = fitting(&look, its->kept, &seen);
	look.any_order = true;
	if (!fit || (tried_again && !(fit & ~excluded)))
		fit = fitting(&look, its->kept, &seen);
	known[variant].nr_not_left += seen.nr_not_left;
	known[variant].nr_reordered += seen.nr_reordered;
	if (row->request.watched)
		known[variant].nr_offloaded += result->nr_offloaded;
	if (its->nr == 1)
		return fit;
	if (fit && !(fit & ~excluded)) {
		look.quiet = false;
		say(&look, "the limit of a batch is not that of earlier rows: answers", its->nr,
		    fit, ~excluded);
	}
	fit &= ~excluded;
	if (engine != OFFLOAD_SERIAL && !tried_again)
		known[variant].excluded |= ~fit & ((1U << its->nr) - 1);
	return fit;
}
