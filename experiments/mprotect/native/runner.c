// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of the mprotect experiment: rounds of every variant and of a
 * plain loop over the same entries. Before each sample memory is what the
 * oracle says it is; after it, all of it is compared with what the oracle
 * expects.
 */
#include <stdlib.h>
#include <string.h>
#include "arch_walk.h"
#include "hardware.h"
#include "mprotect.h"
#include "paging.h"
#include "rounds.h"

#define NR_COUNTS 4

enum pre_state_of_mprotect {
	PRE_WARM,	/* just written, as far as it fits into the caches */
	PRE_COLD,	/* no line of it in any cache */
};

static const char *const pre_states[] = {
	[PRE_WARM] = "warm", [PRE_COLD] = "cold", NULL
};

/* One change of protection: what its line says, and what was read back. */
struct row {
#define ROW PLAN_MEMBER
#define REQUEST(...)
#include "row.def"
	struct mprotect_request request;
	unsigned long *is;
	struct hardware hardware;
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
	if (!row->races)
		return;
	row->hardware.nr = row->request.nr_slots;
	row->hardware.set = malloc(row->request.nr_slots);
	row->hardware.tables = calloc(row->request.nr_slots / PTES_PER_TABLE + 1,
				      sizeof(unsigned long *));
	if (!row->hardware.set || !row->hardware.tables)
		die(RUNNER_NO_RESOURCE, "no memory for what another CPU does");
}

static void close_row(void *context)
{
	struct row *row = context;

	free(row->is);
	free(row->hardware.set);
	free(row->hardware.tables);
}

static void set_before(const struct row *row, const struct mprotect_ops *ops)
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
		"pages that change_protection() returns:", "flushes:",
		"the first address that is flushed:", "the end of what is flushed:",
	};

	for (size_t i = 0; i < NR_COUNTS; i++)
		if (counts[i] != expected[i])
			return paging_say(row->name, subject, names[i], 0,
					  (unsigned long)counts[i], (unsigned long)expected[i]);
	return true;
}

static bool same_mm(const struct row *row, const char *subject,
		    const struct mprotect_result *result)
{
	if (result->nr_stray)
		return paging_say(row->name, subject, "entries outside the VMA:", 0,
				  result->nr_stray, 0);
	if (result->nr_lost_tables)
		return paging_say(row->name, subject,
				  "mm->pgtables_bytes, but for the tables there:", 0,
				  (unsigned long)result->nr_lost_tables, 0);
	return !result->left_pending ||
	       paging_say(row->name, subject,
			  "left in mm->tlb_flush_pending, or tlb_flush_batched:", 0,
			  (unsigned long)result->left_pending, 0);
}

static bool verify(const struct row *row, unsigned int variant)
{
	struct mprotect_result result = { .entries = row->is };
	const char *subject = launch.variant_names[variant];
	const struct mprotect_ops *ops = launch_ops(variant);
	struct paging_answer answers[] = {
		{ &row->entries_after, row->counts },
		{ &row->entries_single, row->counts_single },
		{ &row->entries_apart, row->counts_apart },
	};
	const struct paging_answer *answer;
	long counts[NR_COUNTS];

	ops->read(&result);
	counts[0] = result.nr_pages;
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
	const struct mprotect_ops *ops = launch_ops(slot->variant);
	struct span span;

	set_before(row, ops);
	span = span_begin();
	ops->run();
	span = launch_stop_clock(slot->variant, span);
	return rounds_print_sample(rounds, slot, 1, span, verify(row, slot->variant));
}

static void run_ops(void *context)
{
	const struct mprotect_ops *ops = context;

	ops->run();
}

/* Whether entries are as expected, but for what another CPU may set in them. */
static bool same_but_for_use(const struct row *row, const char *subject)
{
	const unsigned long uses = WALK_HISTORY;
	const unsigned long *after = row->entries_after.words;

	for (unsigned long i = 0; i < row->request.nr_slots; i++)
		if ((row->is[i] ^ after[i]) & ~uses)
			return paging_say(row->name, subject, "entry, used meanwhile,", i,
					  row->is[i] & ~uses, after[i] & ~uses);
	return true;
}

/* The change, while another CPU uses the entries: it loses nothing of what that sets. */
static bool race(struct row *row, unsigned int variant)
{
	struct mprotect_result result = { .entries = row->is };
	const struct mprotect_ops *ops = launch_ops(variant);
	struct hardware *hardware = &row->hardware;
	unsigned long at;

	set_before(row, ops);
	memset(hardware->set, 0, hardware->nr);
	for (at = 0; at < hardware->nr; at += PTES_PER_TABLE)
		hardware->tables[at / PTES_PER_TABLE] = ops->table(at);
	hardware_run(hardware, run_ops, (void *)ops);
	ops->read(&result);

	at = hardware_first_loss(hardware, row->is);
	if (at != hardware->nr)
		return paging_say(row->name, launch.variant_names[variant],
				  "has lost what another CPU noted: entry", at, row->is[at],
				  walk_use(row->is[at], true));
	return same_but_for_use(row, launch.variant_names[variant]);
}

static bool sample_race(struct rounds *rounds, const struct slot *slot)
{
	struct row *row = rounds_row(rounds, slot);
	struct span span = span_begin();
	bool right = true;

	for (unsigned int i = 0; right && i < row->races; i++)
		right = race(row, slot->variant);
	return rounds_print_sample(rounds, slot, 1, span_end(span), right);
}

/* Every entry has the same bits: to change them is to flip the same ones in each. */
static bool sample_limit(struct rounds *rounds, const struct slot *slot)
{
	const struct row *row = rounds_row(rounds, slot);
	unsigned long delta = row->entries.words[0] ^ row->entries_after.words[0];
	unsigned long *entries = row->is;
	struct span span;

	memcpy(entries, row->entries.start, row->entries.bytes);
	if (row->pre_state == PRE_COLD)
		cache_evict(entries, row->entries.bytes);
	span = span_begin();
	for (size_t i = 0; i < row->request.nr_slots; i++)
		entries[i] ^= delta;
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
		.nr_bytes = row->request.nr_slots * DESCRIPTOR_BYTES,
		.context = row,
	};

	rounds_add_variants(&rounds, row->races && hardware_is_there() ? sample_race :
								       sample_variant);
	if (row->limits)
		rounds_add_limit(&rounds, "plain-xor", row, sample_limit);
	return rounds_run(&rounds);
}

static void map(const void *rows, size_t nr_rows)
{
	paging_map(launch_most(rows, nr_rows, nr_pages));
}

const struct experiment experiment = {
	.name = "mprotect",
	.addresses = paging_addresses,
	.prepare = paging_prepare,
	.map = map,
	.open_row = open_row,
	.close_row = close_row,
	.run_row = run_row,
};
