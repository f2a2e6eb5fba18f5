// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of the mremap experiment: rounds of every variant and of a
 * plain loop over the same entries. Before each sample memory is what the
 * oracle says it is; after it, all of it is compared with what the oracle
 * expects.
 */
#include <stdlib.h>
#include <string.h>
#include "mremap.h"
#include "paging.h"
#include "rounds.h"

#define NR_COUNTS 4

enum pre_state_of_mremap {
	PRE_WARM,	/* just written, as far as it fits into the caches */
	PRE_COLD,	/* no line of it in any cache */
};

static const char *const pre_states[] = {
	[PRE_WARM] = "warm", [PRE_COLD] = "cold", NULL
};

/* One move: what its line says, and what was read back. */
struct row {
#define ROW PLAN_MEMBER
#define REQUEST(...)
#include "row.def"
	struct mremap_request request;
	unsigned long *is;
};

#include "plan_row.h"	/* row_layout */

/*
 * Where a batch ends shows in bits that its first entry gives to all, and in
 * flushes of blocks that become single entries or the other way round. All
 * answers are right, but one kernel gives one kind of answer in all rows: those
 * that tell them apart decide for the launch, by variant.
 */
static unsigned int ruled_out[MOST_VARIANTS];

static void open_row(void *context)
{
	struct row *row = context;
	size_t bytes = row->request.nr_slots * sizeof(unsigned long);

	if (row->entries.bytes != bytes || row->entries_after.bytes != bytes ||
	    row->pages.bytes != row->nr_pages * DESCRIPTOR_BYTES)
		die(RUNNER_USAGE, "%s: files of wrong sizes", row->name);
	row->is = malloc(bytes);
	if (!row->is)
		die(RUNNER_NO_RESOURCE, "no memory for the entries read back");
	row->request.entries = row->entries.words;
}

static void close_row(void *context)
{
	struct row *row = context;

	free(row->is);
}

static void set_before(const struct row *row, const struct mremap_ops *ops)
{
	size_t nr_tables = row->request.nr_slots / PTES_PER_TABLE + 16;

	memcpy(descriptor(PAGING_DATA_PFN), row->pages.start, row->pages.bytes);
	ops->prepare(&row->request);
	paging_set_caches(row->pre_state == PRE_COLD, row->pages.bytes, nr_tables);
}

static bool same_counts(const struct row *row, const char *subject, const long *counts,
			const long *expected)
{
	static const char *const names[NR_COUNTS] = {
		"bytes that move_page_tables() returns:", "flushes:",
		"the first address that is flushed:", "the end of what is flushed:",
	};

	for (size_t i = 0; i < NR_COUNTS; i++)
		if (counts[i] != expected[i])
			return paging_say(row->name, subject, names[i], 0,
					  (unsigned long)counts[i], (unsigned long)expected[i]);
	return true;
}

static bool same_mm(const struct row *row, const char *subject,
		    const struct mremap_result *result)
{
	if (result->nr_stray)
		return paging_say(row->name, subject, "entries outside both VMAs:", 0,
				  result->nr_stray, 0);
	if (result->nr_lost_tables)
		return paging_say(row->name, subject,
				  "mm->pgtables_bytes, but for the tables there:", 0,
				  (unsigned long)result->nr_lost_tables, 0);
	return !result->left_batched ||
	       paging_say(row->name, subject, "left in mm->tlb_flush_batched:", 0,
			  (unsigned long)result->left_batched, 0);
}

static bool verify(const struct row *row, unsigned int variant)
{
	struct mremap_result result = { .entries = row->is };
	const char *subject = launch.variant_names[variant];
	const struct mremap_ops *ops = launch_ops(variant);
	struct paging_answer answers[] = {
		{ &row->entries_after, row->counts },
		{ &row->entries_single, row->counts_single },
		{ &row->entries_hinted, row->counts_hinted },
	};
	const struct paging_answer *answer;
	long counts[NR_COUNTS];

	ops->read(&result);
	counts[0] = (long)result.nr_bytes;
	counts[1] = (long)result.flushes.nr;
	counts[2] = (long)result.flushes.start;
	counts[3] = (long)result.flushes.end;
	answer = paging_answer(&ruled_out[variant], answers, 3, row->is, counts, NR_COUNTS);
	return paging_same_entries(row->name, subject, "entry", row->is, answer->entries,
				   row->request.nr_slots) &&
	       same_counts(row, subject, counts, answer->counts) &&
	       same_mm(row, subject, &result) &&
	       paging_same_pages(row->name, subject, &row->pages);
}

static bool sample_variant(struct rounds *rounds, const struct slot *slot)
{
	const struct row *row = rounds_row(rounds, slot);
	const struct mremap_ops *ops = launch_ops(slot->variant);
	struct span span;

	set_before(row, ops);
	span = span_begin();
	ops->run();
	span = launch_stop_clock(slot->variant, span);
	return rounds_print_sample(rounds, slot, 1, span, verify(row, slot->variant));
}

/* The same words at the new place, and none at the old one, by a plain loop. */
static bool sample_limit(struct rounds *rounds, const struct slot *slot)
{
	const struct row *row = rounds_row(rounds, slot);
	const struct mremap_request *request = &row->request;
	unsigned long *from = row->is + request->first;
	struct span span;

	memcpy(row->is, row->entries.start, row->entries.bytes);
	if (row->pre_state == PRE_COLD)
		cache_evict(row->is, row->entries.bytes);
	span = span_begin();
	for (unsigned int call = 0; call < request->nr_calls; call++, from += request->stride)
		for (unsigned long i = 0; i < request->nr_moved; i++) {
			from[i + request->by] = from[i];
			from[i] = 0;
		}
	span = span_end(span);
	return rounds_print_sample(rounds, slot, 1, span, true);
}

static bool run_row(void *context)
{
	struct row *row = context;
	struct rounds rounds = {
		.row = row->name,
		.nr_rounds = row->rounds,
		.nr_threads = 1,
		.warms_up = true,
		.nr_bytes = row->request.nr_calls * row->request.nr_moved * DESCRIPTOR_BYTES,
		.context = row,
	};

	rounds_add_variants(&rounds, sample_variant);
	if (row->limits)
		rounds_add_limit(&rounds, "plain-copy", row, sample_limit);
	return rounds_run(&rounds);
}

static void map(const void *rows, size_t nr_rows)
{
	paging_map(launch_most(rows, nr_rows, nr_pages));
}

const struct experiment experiment = {
	.name = "mremap",
	.addresses = paging_addresses,
	.prepare = paging_prepare,
	.map = map,
	.open_row = open_row,
	.close_row = close_row,
	.run_row = run_row,
};
