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
#include "launch.h"
#include "limit.h"
#include "memory.h"
#include "migrate.h"
#include "plan.h"
#include "row.h"
#include "wake.h"

#define MOST_TURNS 64

static const char *const pre_states[] = {
	[PRE_WARM] = "warm", [PRE_COLD] = "cold", [PRE_ISOLATED] = "isolated", NULL
};

static const char *const engines[] = {
	[MIGRATE_SERIAL] = "serial",
	[MIGRATE_THREADS] = "threads",
	[MIGRATE_DMA] = "dma",
	[MIGRATE_NR_ENGINES] = NULL
};

static const struct plan_field fields[] = {
	PLAN_FIELD("name", PLAN_TEXT, struct row, name),
	PLAN_FIELD("rounds", PLAN_UINT, struct row, rounds),
	PLAN_FIELD("limits", PLAN_UINT, struct row, limits),
	PLAN_FIELD("moved_bytes", PLAN_ULONG, struct row, moved_bytes),
	PLAN_FIELD("folio_bytes", PLAN_ULONG, struct row, folio_bytes),
	PLAN_FIELD_CHOICE("pre_state", pre_states, struct row, pre_state),
	PLAN_FIELD("flush", PLAN_UINT, struct row, flush),
	PLAN_FIELD("mode", PLAN_UINT, struct row, request.mode),
	PLAN_FIELD("reason", PLAN_UINT, struct row, request.reason),
	PLAN_FIELD("nr_pages", PLAN_ULONG, struct row, request.nr_pages),
	PLAN_FIELD("nr_pmds", PLAN_ULONG, struct row, request.nr_pmds),
	PLAN_FIELD("vm_flags", PLAN_ULONG, struct row, request.vm_flags),
	PLAN_FIELD("page_prot", PLAN_ULONG, struct row, request.page_prot),
	PLAN_FIELD("rss", PLAN_LONGS, struct row, request.rss),
	PLAN_FIELD("nr_mappings", PLAN_UINT, struct row, request.nr_mappings),
	PLAN_FIELD("no_copy", PLAN_UINT, struct row, request.no_copy),
	PLAN_FIELD("watched", PLAN_UINT, struct row, request.watched),
	PLAN_FIELD_CHOICE("engine", engines, struct row, request.engine),
	PLAN_FIELD("channels", PLAN_UINT, struct row, request.channels),
	PLAN_FIELD("setup_ns", PLAN_UINT, struct row, request.setup_ns),
	PLAN_FIELD("mb_per_s", PLAN_UINT, struct row, request.mb_per_s),
	PLAN_FIELD("lists", PLAN_TEXT, struct row, lists),
	PLAN_FIELD("heads", PLAN_TEXT, struct row, heads),
	PLAN_FIELD("faults", PLAN_LONGS, struct row, request.faults),
	PLAN_FIELD("src", PLAN_TEXT, struct row, src),
	PLAN_FIELD("dst", PLAN_TEXT, struct row, dst),
	PLAN_FIELD("ptes0", PLAN_TEXT, struct row, ptes[0]),
	PLAN_FIELD("ptes1", PLAN_TEXT, struct row, ptes[1]),
	PLAN_FIELD("pmds0", PLAN_TEXT, struct row, pmds[0]),
	PLAN_FIELD("pmds1", PLAN_TEXT, struct row, pmds[1]),
	PLAN_FIELD("no_target", PLAN_TEXT, struct row, no_target),
	PLAN_FIELD("no_large_target", PLAN_TEXT, struct row, no_large_target),
	PLAN_FIELD("queued", PLAN_TEXT, struct row, queued),
	PLAN_FIELD("poisoned", PLAN_TEXT, struct row, poisoned),
	PLAN_FIELD("deferrable", PLAN_TEXT, struct row, deferrable),
	PLAN_FIELD("deferrable_flag", PLAN_ULONG, struct row, deferrable_flag),
	PLAN_FIELD("after", PLAN_TEXT, struct row, after),
	{ .key = NULL },
};

static unsigned long flush_ns, wake_ns;	/* measured once, if any row wants it */

/* The row's files, mapped while it runs. */
static struct {
	struct image lists, heads, src, dst, deferrable;
	struct image no_target, no_large_target, queued, poisoned;
	struct image ptes[MIGRATE_MOST_MAPPINGS], pmds[MIGRATE_MOST_MAPPINGS];
	struct migrate_mapping is[MIGRATE_MOST_MAPPINGS];	/* as read back */
} now;

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
		now.ptes[i] = image_map(row->ptes[i]);
		now.pmds[i] = image_map(row->pmds[i]);
		if (now.pmds[i].bytes != request->nr_pmds * sizeof(unsigned long) ||
		    now.ptes[i].bytes != now.pmds[i].bytes * 512)
			die(RUNNER_USAGE, "%s: entries for another number of pages", row->name);
		request->mapping[i].ptes = (unsigned long *)now.ptes[i].start;
		request->mapping[i].pmds = (unsigned long *)now.pmds[i].start;
		now.is[i].ptes = room(now.ptes[i].bytes);
		now.is[i].pmds = room(now.pmds[i].bytes);
	}
}

static void open_lists(struct row *row)
{
	struct migrate_request *request = &row->request;

	now.lists = image_map(row->lists);
	request->lists = (const struct migrate_list *)now.lists.start;
	request->nr_lists = now.lists.bytes / sizeof(*request->lists);
	if (!request->nr_lists || request->nr_lists > MIGRATE_MOST_LISTS)
		die(RUNNER_USAGE, "%s: %lu calls: 1 to %lu", row->name, request->nr_lists,
		    MIGRATE_MOST_LISTS);
}

static void open_row(struct row *row)
{
	struct migrate_request *request = &row->request;

	if (!request->nr_mappings || request->nr_mappings > MIGRATE_MOST_MAPPINGS)
		die(RUNNER_USAGE, "%s: %u address spaces", row->name, request->nr_mappings);
	open_lists(row);
	now.heads = image_map_if_any(row->heads);
	now.src = image_map(row->src);
	now.dst = image_map(row->dst);
	now.no_target = image_map_if_any(row->no_target);
	now.no_large_target = image_map_if_any(row->no_large_target);
	now.queued = image_map_if_any(row->queued);
	now.poisoned = image_map_if_any(row->poisoned);
	now.deferrable = image_map_if_any(row->deferrable);
	if (now.src.bytes != request->nr_pages * DESCRIPTOR_BYTES ||
	    now.dst.bytes != now.src.bytes)
		die(RUNNER_USAGE, "%s: descriptors for another number of pages", row->name);
	request->no_target = (const unsigned long *)now.no_target.start;
	request->nr_no_target = now.no_target.bytes / sizeof(unsigned long);
	request->no_large_target = (const unsigned long *)now.no_large_target.start;
	request->nr_no_large_target = now.no_large_target.bytes / sizeof(unsigned long);
	request->queued = (const unsigned long *)now.queued.start;
	request->nr_queued = now.queued.bytes / sizeof(unsigned long);
	request->poisoned = (const unsigned long *)now.poisoned.start;
	request->nr_poisoned = now.poisoned.bytes / sizeof(unsigned long);
	request->shares_cpus = launch.nr_hosted_cpus > launch.nr_cpus;
	request->flush_ticks = row->flush ? flush_ticks(flush_ns) : 0;
	open_mappings(row);
	expect_open(row, &now.deferrable);
	contents_fill(memory_contents(MIGRATE_SRC_PFN), request->nr_pages, launch.nr_cpus);
}

static void close_row(const struct row *row)
{
	expect_close();
	image_unmap(&now.lists);
	image_unmap(&now.heads);
	image_unmap(&now.src);
	image_unmap(&now.dst);
	image_unmap(&now.no_target);
	image_unmap(&now.no_large_target);
	image_unmap(&now.queued);
	image_unmap(&now.poisoned);
	image_unmap(&now.deferrable);
	for (unsigned int i = 0; i < row->request.nr_mappings; i++) {
		free(now.is[i].ptes);
		free(now.is[i].pmds);
		image_unmap(&now.ptes[i]);
		image_unmap(&now.pmds[i]);
	}
	memset(&now, 0, sizeof(now));
}

/* Sources keep their contents, which are compared after each sample. */
static void set_before(const struct row *row)
{
	memcpy(memory_descriptor(MIGRATE_SRC_PFN), now.src.start, now.src.bytes);
	memcpy(memory_descriptor(MIGRATE_DST_PFN), now.dst.start, now.dst.bytes);
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
		{ memory_descriptor(MIGRATE_SRC_PFN), now.src.bytes, true },
		{ memory_descriptor(MIGRATE_DST_PFN), now.dst.bytes, true },
	};

	/* The targets' contents are written past the caches, whatever the state. */
	if (row->pre_state != PRE_WARM)
		cache_evict(memory_contents(MIGRATE_SRC_PFN), row->request.nr_pages * PAGE_BYTES);
	for (size_t i = 0; i < NR_PARTS; i++)
		set_part(&parts[i], row->pre_state);
}

static void print_sample(const struct row *row, unsigned int round, const char *subject,
			 bool is_limit, unsigned int nr_threads, struct span span, bool verified)
{
	const struct sample sample = {
		.row = row->name,
		.round = round,
		.is_limit = is_limit,
		.subject = subject,
		.nr_threads = nr_threads,
		.span = span,
		.nr_bytes = row->moved_bytes,
		.verified = verified,
	};

	launch_print_sample(&sample);
}

/*
 * Each channel has a CPU, and so has who waits for them; threads that copy
 * have one each, and who waits is among them. Channels of a model have none.
 */
static unsigned int nr_cpus_of(const struct row *row, enum migrate_engine engine)
{
	if (engine == MIGRATE_SERIAL || row->request.mb_per_s)
		return 1;
	return row->request.channels + (engine == MIGRATE_DMA);
}

/* Real CPUs that copied, of those that took part. */
static unsigned int nr_copying(enum migrate_engine engine, unsigned int nr)
{
	if (engine == MIGRATE_DMA && nr > 1)
		nr--;
	return nr < launch.nr_cpus ? nr : launch.nr_cpus;
}

static bool sample_variant(const struct row *row, unsigned int round, unsigned int variant)
{
	const struct migrate_ops *ops = launch_ops(variant);
	struct migrate_result result = { 0 };
	struct span span;
	enum migrate_engine engine;
	unsigned int nr_threads;
	bool verified;

	watch_begin(row->name, launch.variant_names[variant]);
	traps_skip_interrupt_flag(row->request.watched);
	memcpy(result.mapping, now.is, sizeof(now.is));
	set_before(row);
	engine = ops->prepare(&row->request);
	set_pre_state(row);
	pool_use(nr_cpus_of(row, engine));
	pool_reset_participants();

	span = span_begin();
	ops->run();
	span = launch_stop_clock(variant, span);

	nr_threads = pool_nr_participants();
	pool_use(0);
	ops->read(&result);
	verified = expect_verify(row, variant, engine, &result);
	print_sample(row, round, launch.variant_names[variant], false,
		     nr_copying(engine, nr_threads), span, verified);
	return verified;
}

static void sample_limit(const struct row *row, unsigned int round, const struct copy_kind *kind,
			 unsigned int nr_threads)
{
	const struct copy_job job = {
		.copy = kind->copy,
		.to = memory_contents(MIGRATE_DST_PFN),
		.from = memory_contents(MIGRATE_SRC_PFN),
		.heads = (const unsigned long *)now.heads.start,
		.nr_folios = now.heads.bytes / sizeof(unsigned long),
		.folio_bytes = row->folio_bytes,
	};
	struct span span;

	watch_begin(row->name, kind->name);
	set_before(row);
	set_pre_state(row);
	pool_use(nr_threads);
	span = span_begin();
	copy_folios(&job, nr_threads);
	span = span_end(span);
	pool_use(0);
	print_sample(row, round, kind->name, true, nr_threads, span, true);
}

/* What runs once in a round: a variant, or a kind of copy. */
struct turn {
	unsigned int variant;
	const struct copy_kind *kind;
	unsigned int nr_threads;
};

static unsigned int plan_turns(const struct row *row, struct turn *turns)
{
	unsigned int most = row->request.channels < launch.nr_cpus ? row->request.channels :
								     launch.nr_cpus;
	unsigned int nr = 0;

	for (unsigned int i = 0; i < launch.nr_variants; i++)
		turns[nr++] = (struct turn){ .variant = i };
	for (const struct copy_kind *kind = copy_kinds; row->limits && kind->name; kind++) {
		if (!kind->available())
			continue;
		turns[nr++] = (struct turn){ .kind = kind, .nr_threads = 1 };
		if (most > 1)
			turns[nr++] = (struct turn){ .kind = kind, .nr_threads = most };
	}
	return nr;
}

static bool run_row(struct row *row)
{
	struct turn turns[MOST_TURNS];
	unsigned int order[MOST_TURNS];
	unsigned int nr = plan_turns(row, turns);
	bool verified = true;

	open_row(row);
	for (unsigned int round = 0; verified && round < row->rounds; round++) {
		random_order(order, nr, &launch.seed);
		if (launch_has_done(row->name, round))
			continue;
		for (unsigned int i = 0; verified && i < nr; i++) {
			const struct turn *turn = &turns[order[i]];

			if (turn->kind)
				sample_limit(row, round, turn->kind, turn->nr_threads);
			else
				verified = sample_variant(row, round, turn->variant);
		}
		if (verified)
			launch_end_round(row->name, round);
	}
	close_row(row);
	return verified;
}

static void tell_of(unsigned int variant, const char *what, unsigned long value)
{
	static char names[2 * MOST_VARIANTS][80];
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
	}
}

static bool run_plan(const char *path)
{
	size_t nr_rows, most_pages = 0, most_tables = 0;
	struct row *rows = plan_read(path, fields, sizeof(*rows), &nr_rows);

	for (size_t i = 0; i < nr_rows; i++) {
		const struct migrate_request *request = &rows[i].request;
		size_t nr_tables = memory_nr_tables(request->nr_pmds, request->nr_mappings);

		if (request->nr_pages > most_pages)
			most_pages = request->nr_pages;
		if (nr_tables > most_tables)
			most_tables = nr_tables;
		if (rows[i].flush && !flush_ns)
			flush_ns = flush_measure_ns();
		if (request->mb_per_s && !wake_ns)
			wake_ns = wake_measure_ns();
	}
	memory_map(most_pages, most_tables);
	launch.huge_ratio = memory_huge_ratio();
	for (size_t i = 0; i < nr_rows; i++)
		if (!run_row(&rows[i]))
			return false;
	tell();
	return true;
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
	{ "node_bytes", MIGRATE_NODE_BYTES },
	{ "vma", MIGRATE_VMA_ADDRESS },
	{ }
};

int main(int argc, char **argv)
{
	static const struct experiment migrate = {
		.name = "migrate",
		.addresses = addresses,
		.prepare = memory_map_small,
		.run = run_plan,
	};

	return launch_main(argc, argv, &migrate);
}
