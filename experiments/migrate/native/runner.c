// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of the migrate experiment: rounds of every variant and of plain
 * copies of the same pages. Before each sample memory is what the oracle says
 * it is; after it, all of it is compared with what the oracle expects.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "contents.h"
#include "expect.h"
#include "flush.h"
#include "copies.h"
#include "memory.h"
#include "migrate.h"
#include "rounds.h"
#include "row.h"
#include "wake.h"

static const char *const pre_states[] = {
	[PRE_WARM] = "warm", [PRE_COLD] = "cold", [PRE_ISOLATED] = "isolated", NULL
};

static const char *const engines[] = {
	[OFFLOAD_SERIAL] = "serial",
	[OFFLOAD_THREADS] = "threads",
	[OFFLOAD_DMA] = "dma",
	[OFFLOAD_NR_ENGINES] = NULL
};

#include "plan_row.h"	/* row_layout */

static unsigned long flush_ns, wake_ns;	/* measured once, if any row wants it */

static void *room(size_t bytes)
{
	void *memory = malloc(bytes);

	if (!memory)
		die(RUNNER_NO_RESOURCE, "no memory for the entries read back");
	return memory;
}

static void open_mappings(struct row *row)
{
	struct migrate_request *request = &row->request;

	for (unsigned int i = 0; i < request->nr_mappings; i++) {
		if (row->pmds[i].bytes != request->nr_pmds * sizeof(unsigned long) ||
		    row->ptes[i].bytes != row->pmds[i].bytes * 512)
			die(RUNNER_USAGE, "%s: entries for another number of pages", row->name);
		request->mapping[i].ptes = (unsigned long *)row->ptes[i].words;
		request->mapping[i].pmds = (unsigned long *)row->pmds[i].words;
		row->is[i].ptes = room(row->ptes[i].bytes);
		row->is[i].pmds = room(row->pmds[i].bytes);
	}
}

static void open_lists(struct row *row)
{
	struct migrate_request *request = &row->request;

	request->lists = (const struct migrate_list *)row->lists.start;
	request->nr_lists = row->lists.bytes / sizeof(*request->lists);
	if (!request->nr_lists || request->nr_lists > MIGRATE_MOST_LISTS)
		die(RUNNER_USAGE, "%s: %lu calls: 1 to %lu", row->name, request->nr_lists,
		    MIGRATE_MOST_LISTS);
	request->no_target = row->no_target.words;
	request->nr_no_target = image_nr_words(&row->no_target);
	request->no_large_target = row->no_large_target.words;
	request->nr_no_large_target = image_nr_words(&row->no_large_target);
	request->queued = row->queued.words;
	request->nr_queued = image_nr_words(&row->queued);
	request->poisoned = row->poisoned.words;
	request->nr_poisoned = image_nr_words(&row->poisoned);
}

static void open_row(void *context)
{
	struct row *row = context;
	struct migrate_request *request = &row->request;

	if (!request->nr_mappings || request->nr_mappings > MIGRATE_MOST_MAPPINGS)
		die(RUNNER_USAGE, "%s: %u address spaces", row->name, request->nr_mappings);
	open_lists(row);
	if (row->src.bytes != request->nr_pages * DESCRIPTOR_BYTES ||
	    row->dst.bytes != row->src.bytes)
		die(RUNNER_USAGE, "%s: descriptors for another number of pages", row->name);
	request->shares_cpus = launch.nr_hosted_cpus > launch.nr_cpus;
	request->flush_ticks = row->flush ? flush_ticks(flush_ns) : 0;
	open_mappings(row);
	expect_open(row);
	contents_fill(memory_contents(MIGRATE_SRC_PFN), NULL, request->nr_pages, launch.nr_cpus);
}

static void close_row(void *context)
{
	struct row *row = context;

	expect_close(row);
	for (unsigned int i = 0; i < row->request.nr_mappings; i++) {
		free(row->is[i].ptes);
		free(row->is[i].pmds);
	}
}

/* Sources keep their contents, which are compared after each sample. */
static void set_before(const struct row *row)
{
	memcpy(memory_descriptor(MIGRATE_SRC_PFN), row->src.start, row->src.bytes);
	memcpy(memory_descriptor(MIGRATE_DST_PFN), row->dst.start, row->dst.bytes);
	contents_spoil(memory_contents(MIGRATE_DST_PFN), row->request.nr_pages, launch.nr_cpus);
}

#define NR_PARTS 4

/* What the operation will read or write, and whether a scanner has just read it. */
struct part {
	void *start;
	size_t bytes;
	bool is_scanned;
};

static void set_part(const struct part *part, enum pre_state_of_migrate state)
{
	if (state == PRE_WARM || (state == PRE_ISOLATED && part->is_scanned))
		cache_touch(part->start, part->bytes);
	else
		cache_evict(part->start, part->bytes);
}

/* All of it, but for our own copies. */
static void set_pre_state(const struct row *row)
{
	size_t nr_tables = memory_nr_tables(row->request.nr_pmds, row->request.nr_mappings);
	const struct part parts[NR_PARTS] = {
		{ memory_descriptor(MIGRATE_TABLE_PFN), nr_tables * DESCRIPTOR_BYTES, false },
		{ memory_contents(MIGRATE_TABLE_PFN), nr_tables * PAGE_BYTES, false },
		{ memory_descriptor(MIGRATE_SRC_PFN), row->src.bytes, true },
		{ memory_descriptor(MIGRATE_DST_PFN), row->dst.bytes, true },
	};

	/* The targets' contents are written past the caches, whatever the state. */
	if (row->pre_state != PRE_WARM)
		cache_evict(memory_contents(MIGRATE_SRC_PFN), row->request.nr_pages * PAGE_BYTES);
	for (size_t i = 0; i < NR_PARTS; i++)
		set_part(&parts[i], row->pre_state);
}

/*
 * Each channel has a CPU, and so has the thread that waits for them. Threads that
 * copy have one each, the waiting one included. Channels of a model have none.
 */
static unsigned int nr_cpus_of(const struct row *row, enum offload_engine engine)
{
	if (engine == OFFLOAD_SERIAL || row->request.mb_per_s)
		return 1;
	return row->request.channels + (engine == OFFLOAD_DMA);
}

/* Real CPUs that copied, of those that took part. */
static unsigned int nr_copying(enum offload_engine engine, unsigned int nr)
{
	if (engine == OFFLOAD_DMA && nr > 1)
		nr--;
	return nr < launch.nr_cpus ? nr : launch.nr_cpus;
}

/* Read as the waiting task would, on the CPU that has migrated it. */
static void read_targets(const struct row *row)
{
	if (row->reads)
		cache_touch(memory_contents(MIGRATE_DST_PFN), row->request.nr_pages * PAGE_BYTES);
}

static bool sample_variant(struct rounds *rounds, const struct slot *slot)
{
	const struct row *row = rounds_row(rounds, slot);
	const struct migrate_ops *ops = launch_ops(slot->variant);
	struct migrate_result result = { 0 };
	struct span span;
	enum offload_engine engine;
	unsigned int nr_threads;
	bool verified;

	traps_skip_interrupt_flag(row->request.watched);
	memcpy(result.mapping, row->is, sizeof(row->is));
	set_before(row);
	engine = ops->prepare(&row->request);
	set_pre_state(row);
	pool_use(nr_cpus_of(row, engine));
	pool_reset_participants();

	span = span_begin();
	ops->run();
	read_targets(row);
	span = launch_stop_clock(slot->variant, span);

	nr_threads = pool_nr_participants();
	pool_use(0);
	ops->read(&result);
	verified = expect_verify(row, slot->variant, engine, &result);
	return rounds_print_sample(rounds, slot, nr_copying(engine, nr_threads), span, verified);
}

static bool sample_copy(struct rounds *rounds, const struct slot *slot)
{
	const struct row *row = rounds_row(rounds, slot);
	const struct copy_kind *kind = slot->limit;
	const struct copy_job job = {
		.copy = kind->copy,
		.to = memory_contents(MIGRATE_DST_PFN),
		.from = memory_contents(MIGRATE_SRC_PFN),
		.heads = row->heads.words,
		.nr_folios = image_nr_words(&row->heads),
		.folio_bytes = row->folio_bytes,
	};
	struct span span;

	set_before(row);
	set_pre_state(row);
	pool_use(slot->nr_threads);
	span = span_begin();
	copy_folios(&job, slot->nr_threads);
	read_targets(row);
	span = span_end(span);
	pool_use(0);
	return rounds_print_sample(rounds, slot, slot->nr_threads, span, true);
}

static bool run_row(void *context)
{
	struct row *row = context;
	struct rounds rounds = {
		.row = row->name,
		.nr_rounds = row->rounds,
		.nr_threads = (unsigned int)min_size(row->request.channels, launch.nr_cpus),
		.nr_bytes = row->moved_bytes,
		.context = row,
	};

	rounds_add_variants(&rounds, sample_variant);
	for (const struct copy_kind *kind = copy_kinds; row->limits && kind->name; kind++)
		if (kind->available())
			rounds_add_limit(&rounds, kind->name, kind, sample_copy);
	return rounds_run(&rounds);
}

static void tell_of(unsigned int variant, const char *what, unsigned long value)
{
	static char names[3 * MOST_VARIANTS][80];
	static unsigned int nr;

	if (!value)
		return;
	snprintf(names[nr], sizeof(names[nr]), "%s.%s", what, launch.variant_names[variant]);
	launch_tell(names[nr++], value);
}

/* What is of the whole launch. */
static void tell(void)
{
	if (flush_ns)
		launch_tell("tlb_flush_ns", flush_ns);
	if (wake_ns)
		launch_tell("engine_wake_ns", wake_ns);
	for (unsigned int i = 0; i < launch.nr_variants; i++) {
		tell_of(i, "not_left_to_split", expect_nr_not_left(i));
		tell_of(i, "reordered", expect_nr_reordered(i));
		tell_of(i, "offloaded", expect_nr_offloaded(i));
	}
}

static void map(const void *context, size_t nr_rows)
{
	const struct row *row = context;
	size_t most_pages = 0, most_tables = 0;

	for (const struct row *end = row + nr_rows; row < end; row++) {
		const struct migrate_request *request = &row->request;

		most_pages = max_size(most_pages, request->nr_pages);
		most_tables = max_size(most_tables, memory_nr_tables(request->nr_pmds,
								     request->nr_mappings));
		if (row->flush && !flush_ns)
			flush_ns = flush_measure_ns();
		if (request->mb_per_s && !wake_ns)
			wake_ns = wake_measure_ns();
	}
	memory_map(most_pages, most_tables);
}

static const struct host_fact addresses[] = {
	{ "src_pfn", MIGRATE_SRC_PFN },
	{ "dst_pfn", MIGRATE_DST_PFN },
	{ "src_map", MIGRATE_MAP_ADDRESS +
		     (MIGRATE_SRC_PFN - MIGRATE_TABLE_PFN) * DESCRIPTOR_BYTES },
	{ "dst_map", MIGRATE_MAP_ADDRESS +
		     (MIGRATE_DST_PFN - MIGRATE_TABLE_PFN) * DESCRIPTOR_BYTES },
	{ "anon_vma", MIGRATE_ANON_VMA_ADDRESS },
	{ "list", MIGRATE_LIST_ADDRESS },
	{ "nodes", MIGRATE_NODE_ADDRESS },
	{ "vma", MIGRATE_VMA_ADDRESS },
	{ }
};

const struct experiment experiment = {
	.name = "migrate",
	.addresses = addresses,
	.prepare = memory_map_small,
	.map = map,
	.open_row = open_row,
	.close_row = close_row,
	.run_row = run_row,
	.end = tell,
};
