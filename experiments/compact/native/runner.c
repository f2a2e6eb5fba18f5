// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of the compact experiment: rounds of every variant. For each
 * sample a node is made anew and filled, and what comes of it is looked at.
 */
#include <string.h>
#include "copies.h"
#include "hog.h"
#include "rounds.h"
#include "row.h"

#define NR_UPPER_TABLES 16

static const char *const hole_kinds[] = {
	[HOLES_SCATTERED] = "scattered", [HOLES_EVEN] = "even", [HOLES_ODD] = "odd", NULL
};

static const char *const orders[] = {
	[ORDER_DOWN] = "down", [ORDER_UP] = "up", [ORDER_RANDOM] = "random", NULL
};

#include "plan_row.h"	/* row_layout */

static size_t nr_tables(size_t nr_pages)
{
	return nr_pages / COMPACT_HUGE_PAGES + NR_UPPER_TABLES;
}

/* What stays in as many blocks as there are to be huge pages, if these are half at most. */
static void set_heads(struct row *row)
{
	unsigned long nr = row->request.nr_huge * COMPACT_HUGE_PAGES;

	row->nr_heads = 0;
	if (!row->limits || nr > row->request.nr_pages / 2)
		return;
	memset(row->is_gone, 0, row->request.nr_pages);
	for (unsigned long i = 0; i < row->request.nr_freed; i++)
		row->is_gone[row->freed[i]] = true;
	for (unsigned long i = 0; i < nr; i++)
		if (!row->is_gone[i])
			row->heads[row->nr_heads++] = i;
}

static void open_row(void *context)
{
	struct row *row = context;
	struct compact_request *request = &row->request;
	size_t nr = request->nr_pages;

	if (!nr || nr % NODE_STEP)
		die(RUNNER_USAGE, "%s: no whole number of blocks of the largest order", row->name);
	if (row->used_every < 2 || row->free_every < 2 ||
	    (row->used_every != 2 && row->free_every != 2))
		die(RUNNER_USAGE, "%s: neither one page of some that stays nor one that goes",
		    row->name);
	request->group = max_size(row->used_every, row->free_every);
	row->freed = host_alloc(nr * sizeof(*row->freed));
	row->is_gone = host_alloc(nr);
	row->before = host_alloc(nr * sizeof(*row->before));
	row->after = host_alloc(nr * sizeof(*row->after));
	row->was = host_alloc(nr * DESCRIPTOR_BYTES);
	row->pages = host_alloc(nr * sizeof(*row->pages));
	row->frames.nr = nr;
	row->frames.owner = host_alloc(nr);
	row->huge = host_alloc((request->nr_huge + 1) * sizeof(*row->huge));
	row->ballast = host_alloc((nr / COMPACT_HUGE_PAGES + 1) * sizeof(*row->ballast));
	request->huge = row->huge;
	request->ballast = row->ballast;
	row->heads = host_alloc(nr * sizeof(*row->heads));
	/* What is counted must not depend on what a launch draws. */
	holes_draw(row, row->drawn + (launch.counts ? 0 : launch.number));
	set_heads(row);
}

static void close_row(void *context)
{
	struct row *row = context;
	void *held[] = {
		row->freed, row->is_gone, row->before, row->after, row->was, row->pages,
		row->frames.owner, row->huge, row->ballast, row->heads,
	};

	for (size_t i = 0; i < sizeof(held) / sizeof(*held); i++)
		host_free(held[i]);
}

/* Pages that are given back, as far as the process had them in a whole group. */
static void set_gone(struct row *row, unsigned long nr_mapped)
{
	unsigned long end = nr_mapped - nr_mapped % row->request.group;

	memset(row->is_gone, 0, row->request.nr_pages);
	for (unsigned long i = 0; i < row->request.nr_freed; i++)
		if (row->freed[i] < end)
			row->is_gone[row->freed[i]] = true;
}

/* Nobody's frames hold what no page does, or a page that is not copied might be found in one. */
static void spoil_others(const struct row *row)
{
	unsigned long frame = 0, end;

	for (; frame < row->request.nr_pages; frame = end + 1) {
		for (end = frame; end < row->request.nr_pages; end++)
			if (row->pages[end] != CONTENTS_ANY)
				break;
		if (end > frame)
			contents_spoil(contents_of(NODE_PFN + frame), end - frame, 1);
	}
}

/* A node that is full of holes, and what the process has written into its pages. */
static bool make_node(struct row *row, unsigned int variant)
{
	const struct compact_ops *ops = launch_ops(variant);

	ops->layout(&row->frames.layout);
	frames_check_layout(&row->frames.layout);
	row->result.nr_mapped = ops->prepare(&row->request);
	set_gone(row, row->result.nr_mapped);
	memset(row->before, 0, row->request.nr_pages * sizeof(*row->before));
	ops->read_entries(row->before);
	if (!verify_entries(row, variant, row->before))
		return false;
	contents_fill(contents_of(NODE_PFN), row->pages, row->request.nr_pages, launch.nr_cpus);
	spoil_others(row);
	memcpy(row->was, descriptor_of(NODE_PFN), row->request.nr_pages * DESCRIPTOR_BYTES);
	return true;
}

#define TELL(name_, value_) (facts[nr++] = (struct host_fact){ name_, (unsigned long)(value_) })

/*
 * What the one CPU did for us within the clock. It idles while the kernel
 * sleeps, until an engine is done, and never beside a loop that only counts.
 */
static unsigned int tell_cpu(struct host_fact *facts, const struct work *work)
{
	uint64_t used_ns = work->kernel_ns + work->waited_ns;
	bool idles = !work->is_busy && work->time_ns > used_ns;
	unsigned int nr = 0;

	TELL("user_ns", work->hog_ns);
	TELL("system_ns", work->kernel_ns);
	TELL("idle_ns", idles ? work->time_ns - used_ns : 0);
	if (work->is_busy)
		TELL("hog_iterations", work->hog_iterations);
	return nr;
}

/* As columns.py names them. */
static const struct host_fact *told(const struct row *row, const struct work *work)
{
	static struct host_fact facts[20];
	const struct compact_result *result = &row->result;
	const long *events = result->events;
	unsigned int nr = 0;

	TELL("asked", row->request.nr_huge);
	TELL("allocated", result->nr_allocated);
	TELL("pgmigrate_success", events[COMPACT_PGMIGRATE_SUCCESS]);
	TELL("pgmigrate_fail", events[COMPACT_PGMIGRATE_FAIL]);
	TELL("compact_migrate_scanned", events[COMPACT_COMPACTMIGRATE_SCANNED]);
	TELL("compact_free_scanned", events[COMPACT_COMPACTFREE_SCANNED]);
	TELL("compact_stall", events[COMPACT_COMPACTSTALL]);
	TELL("dcbm_folios_migrated", result->nr_offloaded);
	TELL("tlb_flushes", result->nr_flushes);
	if (!launch.counts) {
		TELL("longest_ns", result->longest_ns);
		nr += tell_cpu(facts + nr, work);
	}
	facts[nr].name = NULL;
	return facts;
}

#undef TELL

static bool sample_variant(struct rounds *rounds, const struct slot *slot)
{
	struct row *row = rounds_row(rounds, slot);
	const struct compact_ops *ops = launch_ops(slot->variant);
	struct work work;
	struct span span;
	bool verified;

	if (!make_node(row, slot->variant))
		return false;
	pool_use(1);
	work_begin(&work, row->busy && !launch.counts);
	span = span_begin();
	ops->run();
	span = launch_stop_clock(slot->variant, span);
	work_end(&work);
	pool_use(0);
	ops->read(&row->result);
	row->frames.state = row->result.node;
	memset(row->after, 0, row->request.nr_pages * sizeof(*row->after));
	ops->read_entries(row->after);
	verified = verify_all(row, slot->variant);
	rounds->nr_bytes = (row->result.nr_allocated << COMPACT_HUGE_ORDER) * PAGE_BYTES;
	rounds->beside = told(row, &work);
	return rounds_print_sample(rounds, slot, 1, span, verified);
}

/* Into the node's other half; what is in the node does not matter. */
static bool sample_copy(struct rounds *rounds, const struct slot *slot)
{
	const struct row *row = rounds_row(rounds, slot);
	const struct copy_kind *kind = slot->limit;
	const struct copy_job job = {
		.copy = kind->copy,
		.to = contents_of(NODE_PFN + row->request.nr_pages / 2),
		.from = contents_of(NODE_PFN),
		.heads = row->heads,
		.nr_folios = row->nr_heads,
		.folio_bytes = PAGE_BYTES,
	};
	struct span span;

	contents_fill(contents_of(NODE_PFN), NULL, row->request.nr_pages, launch.nr_cpus);
	pool_use(1);
	span = span_begin();
	copy_folios(&job, 1);
	span = span_end(span);
	pool_use(0);
	rounds->nr_bytes = (row->request.nr_huge << COMPACT_HUGE_ORDER) * PAGE_BYTES;
	return rounds_print_sample(rounds, slot, 1, span, true);
}

static bool run_row(void *context)
{
	struct row *row = context;
	struct rounds rounds = {
		.row = row->name,
		.nr_rounds = row->rounds,
		.nr_threads = 1,
		.context = row,
	};

	rounds_add_variants(&rounds, sample_variant);
	for (const struct copy_kind *kind = copy_kinds; row->nr_heads && kind->name; kind++)
		if (kind->available())
			rounds_add_limit(&rounds, kind->name, kind, sample_copy);
	return rounds_run(&rounds);
}

static void map(const void *rows, size_t nr_rows)
{
	size_t most = launch_most(rows, nr_rows, request.nr_pages);

	frames_map_node(most);
	launch_map(NODE_RAM_ADDRESS, nr_tables(most) * PAGE_BYTES, 0);
}

const struct experiment experiment = {
	.name = "compact",
	.map = map,
	.open_row = open_row,
	.close_row = close_row,
	.run_row = run_row,
};
