// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of the fork experiment: rounds of every variant and of a plain
 * loop over the same memory. Before each sample memory is what the oracle
 * says it is; after it, all of it is compared with what the oracle expects.
 */
#include <stdlib.h>
#include <string.h>
#include "limit.h"
#include "rounds.h"
#include "row.h"

enum pre_state_of_fork {
	PRE_WARM,	/* just written, as far as it fits into the caches */
	PRE_COLD,	/* no line of it in any cache */
};

static const char *const pre_states[] = {
	[PRE_WARM] = "warm", [PRE_COLD] = "cold", NULL
};

static const char *const operations[] = {
	[FORK_COPY] = "copy",
	[FORK_UNMAP] = "unmap",
	[FORK_UNMAP_CHILD] = "unmap-child",
	[FORK_EXIT] = "exit",
	[FORK_EXIT_CHILD] = "exit-child",
	[FORK_DISCARD] = "discard",
	[FORK_TRUNCATE] = "truncate",
	[FORK_NR_OPERATIONS] = NULL
};

#include "plan_row.h"	/* row_layout */

static void open_row(void *context)
{
	struct row *row = context;
	size_t bytes = row->request.nr_slots * sizeof(unsigned long);

	if (row->parent.bytes != bytes || row->parent_after.bytes != bytes ||
	    row->pages.bytes != row->nr_pages * DESCRIPTOR_BYTES ||
	    row->pages_after.bytes != row->pages.bytes)
		die(RUNNER_USAGE, "%s: files of wrong sizes", row->name);
	row->parent_is = malloc(bytes);
	row->child_is = malloc(bytes);
	if (!row->parent_is || !row->child_is)
		die(RUNNER_NO_RESOURCE, "no memory for the entries read back");
	row->request.parent = row->parent.words;
	row->request.child = row->child.words;
}

static void close_row(void *context)
{
	struct row *row = context;

	free(row->parent_is);
	free(row->child_is);
}

/* Different contents in every frame that is copied from, and none where to. */
static void fill_contents(const struct row *row)
{
	const unsigned long *pair = row->copies.words;

	for (size_t i = 0; i < image_nr_words(&row->copies); i += 2) {
		memset(contents(pair[i]), (int)(pair[i] * 31 + i), PAGE_BYTES);
		memset(contents(pair[i + 1]), 0, PAGE_BYTES);
	}
}

static void set_before(const struct row *row, const struct fork_ops *ops)
{
	memcpy(descriptor(PAGING_DATA_PFN), row->pages.start, row->pages.bytes);
	fill_contents(row);
	ops->prepare(&row->request);
}

/* All that the operation will read or write, but for our own copies. */
static void set_pre_state(const struct row *row)
{
	size_t nr_tables = (row->request.nr_slots / PTES_PER_TABLE + 16) * 2;

	paging_set_caches(row->pre_state == PRE_COLD, row->pages.bytes, nr_tables);
}

static bool sample_variant(struct rounds *rounds, const struct slot *slot)
{
	const struct row *row = rounds_row(rounds, slot);
	const struct fork_ops *ops = launch_ops(slot->variant);
	struct span span;

	set_before(row, ops);
	set_pre_state(row);
	span = span_begin();
	ops->run(row->operation);
	span = launch_stop_clock(slot->variant, span);
	return rounds_print_sample(rounds, slot, 1, span, expect_verify(row, slot->variant));
}

/* The first variant's page tables will do: they are the same for all. */
static bool sample_limit(struct rounds *rounds, const struct slot *slot)
{
	const struct row *row = rounds_row(rounds, slot);
	const struct limit_kind *kind = slot->limit;
	struct limit_job job = {
		.entries = row->parent_is,
		.copies = row->child_is,
		.nr = row->request.nr_slots,
		.descriptors = descriptor(0),
		.unmaps = row->operation != FORK_COPY,
	};
	struct span span;

	memcpy(row->parent_is, row->parent.start, row->parent.bytes);
	set_before(row, launch_ops(0));
	set_pre_state(row);
	if (row->pre_state == PRE_COLD) {
		cache_evict(job.entries, job.nr * sizeof(*job.entries));
		cache_evict(job.copies, job.nr * sizeof(*job.copies));
	}
	span = span_begin();
	kind->run(&job);
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

	rounds_add_variants(&rounds, sample_variant);
	for (const struct limit_kind *kind = limit_kinds; row->limits && kind->name; kind++)
		rounds_add_limit(&rounds, kind->name, kind, sample_limit);
	return rounds_run(&rounds);
}

static void map(const void *rows, size_t nr_rows)
{
	paging_map(launch_most(rows, nr_rows, nr_pages));
}

const struct experiment experiment = {
	.name = "fork",
	.addresses = paging_addresses,
	.prepare = paging_prepare,
	.map = map,
	.open_row = open_row,
	.close_row = close_row,
	.run_row = run_row,
};
