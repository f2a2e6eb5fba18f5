// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of a fork as a call: rounds of every variant. For each sample a
 * node, its caches and the parent are made anew. What comes before the
 * operation is done and looked at, then the operation is, and where a child is
 * left it exits at last: all must be as it was.
 */
#include <string.h>
#include "limit.h"
#include "rounds.h"

static const char *const operations[] = {
	[CALLING_FORK] = "fork", [CALLING_FAULTS] = "faults", [CALLING_EXIT] = "exit", NULL
};

static const char *const pre_states[] = {
	[PRE_WARM] = "warm", [PRE_COLD] = "cold", NULL
};

#include "plan_row.h"	/* row_layout */

static void open_space(struct calling_space *space, const struct calling_request *request)
{
	space->most = request->nr_vmas;
	space->vmas = host_alloc(request->nr_vmas * VMA_WORDS * sizeof(*space->vmas));
	space->entries = host_alloc((request->nr_anon + 1) * sizeof(*space->entries));
}

static void open_row(void *context)
{
	struct row *row = context;
	struct calling_request *request = &row->request;
	const unsigned long *asked = row->asked.words;
	unsigned long nr_anon = 0;

	request->vmas = asked;
	request->nr_vmas = image_nr_words(&row->asked) / ASKED_WORDS;
	for (unsigned long i = 0; i < request->nr_vmas; i++)
		nr_anon += asked[i * ASKED_WORDS + ASKED_NR_ANON];
	if (!request->nr_pages || request->nr_pages % NODE_STEP || nr_anon != request->nr_anon)
		die(RUNNER_USAGE, "%s: no such node or process", row->name);
	row->frames.nr = request->nr_pages;
	row->frames.owner = host_alloc(request->nr_pages);
	open_space(&row->before, request);
	open_space(&row->parent_is, request);
	open_space(&row->child_is, request);
	if (row->vma_bytes)
		limit_open(row);
}

static void close_row(void *context)
{
	struct row *row = context;
	struct calling_space *spaces[] = { &row->before, &row->parent_is, &row->child_is };

	for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++) {
		host_free(spaces[i]->vmas);
		host_free(spaces[i]->entries);
	}
	host_free(row->frames.owner);
	if (row->vma_bytes)
		limit_close(row);
}

static void read_all(struct row *row, const struct calling_ops *ops)
{
	ops->read_space(&row->parent_is, 0);
	ops->read_space(&row->child_is, 1);
	ops->read(&row->result);
}

/* Each page says which it is; the kernel has zeroed it. */
static void write_contents(const struct row *row)
{
	for (unsigned long at = 0; at < row->request.nr_anon; at++) {
		unsigned long frame = (row->before.entries[at] & 0x000ffffffffff000UL) >> 12;

		*(unsigned long *)contents_of(frame) = ~at;
	}
}

/* A process that has its pages, and nothing of it or the caches is in flux. */
static bool make_parent(struct row *row, unsigned int variant)
{
	const struct calling_ops *ops = launch_ops(variant);

	ops->layout(&row->frames.layout);
	frames_check_layout(&row->frames.layout);
	if (!ops->prepare(&row->request))
		die(RUNNER_USAGE, "%s: the node is too small", row->name);
	ops->settle();
	ops->read_space(&row->before, 0);
	ops->read(&row->result);
	row->result_before = row->result;
	if (!verify_before(row, variant))
		return false;
	write_contents(row);
	return true;
}

static bool make_child(struct row *row, unsigned int variant)
{
	const struct calling_ops *ops = launch_ops(variant);

	if (ops->fork())
		return frames_fail("copy_mm() failed");
	read_all(row, ops);
	return verify_forked(row, variant, false);
}

/* All that is in use. */
static void set_pre_state(const struct row *row)
{
	for (unsigned long frame = 0; frame < row->frames.nr; frame++) {
		enum owner owner = row->frames.owner[frame];

		if (owner == OWNER_FREE || owner == OWNER_PCP)
			continue;
		set_caches(row, descriptor_of(NODE_PFN + frame), DESCRIPTOR_BYTES);
		set_caches(row, contents_of(NODE_PFN + frame), PAGE_BYTES);
	}
}

/* End the child if it still runs; then all must be as before. */
static bool end(struct row *row, unsigned int variant)
{
	const struct calling_ops *ops = launch_ops(variant);
	bool faulted = row->operation == CALLING_FAULTS;

	if (row->operation != CALLING_EXIT) {
		if (!verify_forked(row, variant, faulted))
			return false;
		ops->run(CALLING_EXIT);
	}
	ops->settle();
	read_all(row, ops);
	return verify_alone(row, variant, faulted);
}

/* All that comes before the operation. */
static bool make_processes(struct row *row, unsigned int variant)
{
	return make_parent(row, variant) &&
	       (row->operation == CALLING_FORK || make_child(row, variant));
}

static bool sample_variant(struct rounds *rounds, const struct slot *slot)
{
	struct row *row = rounds_row(rounds, slot);
	const struct calling_ops *ops = launch_ops(slot->variant);
	struct span span;

	if (!make_processes(row, slot->variant))
		return false;
	set_pre_state(row);
	span = span_begin();
	ops->run(row->operation);
	span = launch_stop_clock(slot->variant, span);
	read_all(row, ops);
	return rounds_print_sample(rounds, slot, 1, span, end(row, slot->variant));
}

static bool sample_limit(struct rounds *rounds, const struct slot *slot)
{
	struct row *row = rounds_row(rounds, slot);
	struct span span;

	if (!make_processes(row, 0))
		return false;
	set_pre_state(row);
	limit_prepare(row);
	span = span_begin();
	limit_run(row);
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
		.nr_bytes = row->request.nr_anon * DESCRIPTOR_BYTES,
		.context = row,
	};

	rounds_add_variants(&rounds, sample_variant);
	if (row->vma_bytes)
		rounds_add_limit(&rounds, "plain-loop", row, sample_limit);
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
