// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of unmapping down to the page allocator: rounds of every variant
 * and of a plain loop. For each sample a node is made anew and a process
 * filled, and all that comes of it is looked at.
 */
#include <string.h>
#include "rounds.h"
#include "row.h"

enum pre_state_of_node {
	PRE_WARM,	/* just read, as far as it fits into the caches */
	PRE_COLD,	/* no line of it in any cache */
};

static const char *const pre_states[] = {
	[PRE_WARM] = "warm", [PRE_COLD] = "cold", NULL
};

#include "plan_row.h"	/* row_layout */

static unsigned long nr_folios(const struct row *row)
{
	return row->request.nr_mapped >> row->request.order;
}

static void draw(struct row *row)
{
	/* What is counted must not depend on what a launch draws. */
	uint64_t seed = row->drawn + (launch.counts ? 0 : launch.number);

	for (unsigned int i = 0; i < nr_folios(row); i++)
		row->folios[i] = i;
	for (unsigned long i = nr_folios(row); row->shuffled && i > 1; i--) {
		unsigned long j = random_next(&seed) % i;
		unsigned int last = row->folios[i - 1];

		row->folios[i - 1] = row->folios[j];
		row->folios[j] = last;
	}
}

static void open_row(void *context)
{
	struct row *row = context;
	const struct freeing_request *request = &row->request;
	size_t nr = request->nr_pages, bytes = request->nr_mapped * sizeof(unsigned long);

	if (!nr || nr % NODE_STEP || request->order > NODE_BLOCK_ORDER || !nr_folios(row) ||
	    request->nr_mapped % (1UL << request->order) || request->nr_mapped >= nr)
		die(RUNNER_USAGE, "%s: no such node or mapping", row->name);
	row->folios = host_alloc(nr_folios(row) * sizeof(*row->folios));
	row->frames.nr = nr;
	row->frames.owner = host_alloc(nr);
	row->owner_before = host_alloc(nr);
	row->before = host_alloc(bytes);
	row->after = host_alloc(bytes);
	row->request.folios = row->folios;
	draw(row);
}

static void close_row(void *context)
{
	struct row *row = context;
	void *held[] = {
		row->folios, row->frames.owner, row->owner_before, row->before, row->after,
	};

	for (size_t i = 0; i < sizeof(held) / sizeof(*held); i++)
		host_free(held[i]);
}

/* A process that has its pages. */
static bool make_process(struct row *row, unsigned int variant)
{
	const struct freeing_ops *ops = launch_ops(variant);

	ops->layout(&row->frames.layout);
	frames_check_layout(&row->frames.layout);
	if (!ops->prepare(&row->request))
		die(RUNNER_USAGE, "%s: the node is too small", row->name);
	ops->read_entries(row->before);
	ops->read(&row->result);
	row->frames.state = row->result.node;
	return verify_before(row, variant);
}

static void set_caches(const struct row *row, unsigned char *start, size_t bytes)
{
	if (row->pre_state == PRE_COLD)
		cache_evict(start, bytes);
	else
		cache_touch(start, bytes);
}

/* All that the operation will read or write. */
static void set_pre_state(const struct row *row)
{
	set_caches(row, descriptor_of(NODE_PFN), row->frames.nr * DESCRIPTOR_BYTES);
	for (unsigned long frame = 0; frame < row->frames.nr; frame++)
		if (row->owner_before[frame] == OWNER_KERNEL)
			set_caches(row, contents_of(NODE_PFN + frame), PAGE_BYTES);
}

static bool sample_variant(struct rounds *rounds, const struct slot *slot)
{
	struct row *row = rounds_row(rounds, slot);
	const struct freeing_ops *ops = launch_ops(slot->variant);
	struct span span;

	if (!make_process(row, slot->variant))
		return false;
	set_pre_state(row);
	span = span_begin();
	ops->run();
	span = launch_stop_clock(slot->variant, span);
	ops->read(&row->result);
	row->frames.state = row->result.node;
	ops->read_entries(row->after);
	return rounds_print_sample(rounds, slot, 1, span, verify_after(row, slot->variant));
}

/* Each entry is cleared, and each folio put on a list: nothing is counted, locked or proven. */
static void clear_and_link(struct row *row)
{
	unsigned char **link = NULL;

	for (unsigned long i = 0; i < row->request.nr_mapped; i++) {
		unsigned long pfn = (row->before[i] & 0x000ffffffffff000UL) >> 12;

		row->before[i] = 0;
		if (i & ((1UL << row->request.order) - 1))
			continue;
		if (link)
			*link = descriptor_of(pfn);
		link = (unsigned char **)(descriptor_of(pfn) + row->frames.layout.links);
	}
}

static bool sample_limit(struct rounds *rounds, const struct slot *slot)
{
	struct row *row = rounds_row(rounds, slot);
	size_t bytes = row->request.nr_mapped * sizeof(*row->before);
	struct span span;

	if (!make_process(row, 0))
		return false;
	set_pre_state(row);
	if (row->pre_state == PRE_COLD)
		cache_evict(row->before, bytes);
	span = span_begin();
	clear_and_link(row);
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
		.nr_bytes = row->request.nr_mapped * DESCRIPTOR_BYTES,
		.context = row,
	};

	rounds_add_variants(&rounds, sample_variant);
	if (row->limits)
		rounds_add_limit(&rounds, "plain-clear-and-link", row, sample_limit);
	return rounds_run(&rounds);
}

static void map(const void *rows, size_t nr_rows)
{
	frames_map_node(launch_most(rows, nr_rows, request.nr_pages));
}

const struct experiment experiment = {
	.name = "fork",
	.map = map,
	.open_row = open_row,
	.close_row = close_row,
	.run_row = run_row,
};
