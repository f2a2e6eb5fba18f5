// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of the deferred-init experiment: rounds of every variant and
 * every kind of fill, each sample verified before the next. Results are JSON
 * lines.
 */
#include <stdio.h>
#include <string.h>
#include "buddy.h"
#include "deferred_init.h"
#include "rounds.h"

#define NO_GROWTH 255	/* in the plan, where an order would be */

/* Beside enum pre_state: as PRE_DIRTY, but it holds what could be free blocks. */
#define PRE_LOOKALIKE (PRE_DIRTY + 1)

/*
 * Where things lie, the same in every launch and for every variant, because
 * descriptors hold addresses: far from where Linux puts anything by itself.
 */
#define MAP_ADDRESS 0x200000000000UL
#define USAGE_ADDRESS 0x1ffff0000000UL
#define USAGE_BYTES (16UL << 20)
#define RAM_ADDRESS 0x300000000000UL
#define FRAME_BYTES 4096UL

/* One point of the experiment's parameters, as its line has it. */
struct row {
#define ROW PLAN_MEMBER
#define REQUEST(...)
#include "row.def"
	struct deferred_request request;
};

static const char *const pre_states[] = {
	[PRE_EVICTED] = "evicted",
	[PRE_DIRTY] = "dirty",
	[PRE_LOOKALIKE] = "lookalike",
	NULL
};

#include "plan_row.h"	/* row_layout */

static struct arena arena;

static size_t map_bytes(const struct row *row)
{
	return row->nr_pages * DESCRIPTOR_BYTES;
}

/* Up to the end of the last node. */
static size_t ram_bytes(const struct row *row)
{
	unsigned long end_pfn = (unsigned long)row->spans[row->request.nr_nodes * 3 - 1];

	return row->init_on_free ? (end_pfn - row->request.map_pfn) * FRAME_BYTES : 0;
}

static unsigned long nr_managed(const struct row *row)
{
	unsigned long nr = 0;

	for (unsigned int nid = 0; nid < row->request.nr_nodes; nid++)
		nr += (unsigned long)row->managed[nid];
	return nr;
}

/* What is written inside the clock: nothing of what growing has initialised. */
static size_t written_bytes(const struct row *row)
{
	return (nr_managed(row) - row->grown_pages) * DESCRIPTOR_BYTES;
}

static unsigned int nr_cpus_of(const struct row *row)
{
	return row->request.nr_nodes * row->request.nr_cpus;
}

static void open_row(void *context)
{
	struct row *row = context;

	if (!row->request.nr_nodes || row->request.nr_nodes > DEFERRED_MOST_NODES ||
	    !row->request.nr_cpus || nr_cpus_of(row) > launch.nr_hosted_cpus)
		die(RUNNER_USAGE, "%s: %u nodes of %u CPUs: there are %u CPUs", row->name,
		    row->request.nr_nodes, row->request.nr_cpus, launch.nr_hosted_cpus);
	if (row->image.bytes != map_bytes(row) || row->usage.bytes > USAGE_BYTES)
		die(RUNNER_USAGE, "%s: files of wrong sizes", row->name);
	for (unsigned int nid = 0; nid < row->request.nr_nodes; nid++) {
		const long *span = &row->spans[nid * 3];

		row->request.node[nid] = (struct deferred_span) {
			.start_pfn = (unsigned long)span[0],
			.first_deferred_pfn = (unsigned long)span[1],
			.end_pfn = (unsigned long)span[2],
		};
	}
	row->request.shares_cpus = nr_cpus_of(row) > launch.nr_cpus;
	row->request.ranges = (const struct deferred_range *)row->ranges.start;
	row->request.nr_ranges = row->ranges.bytes / sizeof(struct deferred_range);
	row->request.map = arena.start;
	row->request.usage = (void *)USAGE_ADDRESS;
	row->request.ram = row->init_on_free ? (void *)RAM_ADDRESS : NULL;
}

/*
 * Reserved memory and holes have descriptors before deferred initialisation; no
 * line of them stays in a cache: those of a booted kernel are long gone.
 */
static void put_held(const struct row *row)
{
	const unsigned long *pair = row->held.words;

	if (row->request.is_boot)
		return;	/* which makes them itself */
	for (size_t i = 0; i < image_nr_words(&row->held); i += 2) {
		size_t from = (pair[i] - row->request.map_pfn) * DESCRIPTOR_BYTES;
		size_t bytes = (pair[i + 1] - pair[i]) * DESCRIPTOR_BYTES;

		memcpy(arena.start + from, row->image.start + from, bytes);
		if (row->pre_state == PRE_EVICTED)
			cache_evict(arena.start + from, bytes);
	}
}

static bool say(const struct row *row, const char *subject, unsigned int nid, const char *what,
		unsigned long is, unsigned long expected)
{
	fprintf(stderr, "%s: %s: node %u: %s is %#lx, the oracle says %#lx\n",
		row->name, subject, nid, what, is, expected);
	return false;
}

/* Blocks of one node are neighbours in the file: from @first up to what is returned. */
static const struct block *blocks_of(const struct row *row, unsigned int nid,
				     const struct block **first)
{
	const struct deferred_span *span = &row->request.node[nid];
	const struct block *last, *end;

	*first = (const struct block *)row->blocks.start;
	end = *first + row->blocks.bytes / sizeof(**first);
	while (*first < end && (*first)->pfn < span->first_deferred_pfn)
		(*first)++;
	for (last = *first; last < end && last->pfn < span->end_pfn; last++)
		;
	return last;
}

static bool same_lists(const struct row *row, const char *subject, unsigned int nid,
		       const struct deferred_zone *zone, bool ascending)
{
	const struct memory_map map = {
		arena.start, row->request.map_pfn, row->nr_pages,
	};
	const struct block *first, *last = blocks_of(row, nid, &first);
	char who[256];

	snprintf(who, sizeof(who), "%s: %s: node %u", row->name, subject, nid);
	return buddy_check(who, zone, &map, first, (size_t)(last - first), ascending);
}

/* Kernels that have large blocks' pages counted apart; __add_to_free_list(), mm/page_alloc.c */
static bool same_large_blocks(const struct row *row, const char *subject, unsigned int nid,
			      const struct deferred_zone *zone)
{
	const struct block *block, *last = blocks_of(row, nid, &block);
	long expected = 0;

	if (!zone->counted_order)
		return true;
	for (; block < last; block++)
		if (block->order >= zone->counted_order)
			expected += 1L << block->order;
	return zone->nr_free_in_blocks == expected ||
	       say(row, subject, nid, "NR_FREE_PAGES_BLOCKS",
		   (unsigned long)zone->nr_free_in_blocks, (unsigned long)expected);
}

static bool is_left_alone(const struct row *row, const char *subject, unsigned int nid,
			  const struct host_area *area)
{
	char of[64];

	snprintf(of, sizeof(of), " of node %u", nid);
	return areas_are_as_expected(row->name, subject, of, area);
}

static bool same_zone(const struct row *row, unsigned int variant, unsigned int nid,
		      bool ascending)
{
	const struct deferred_ops *ops = launch_ops(variant);
	const char *subject = launch.variant_names[variant];
	unsigned long managed = (unsigned long)row->managed[nid];
	struct deferred_zone zone;

	ops->read(nid, &zone);
	if (zone.managed_pages != managed)
		return say(row, subject, nid, "managed_pages", zone.managed_pages, managed);
	if (zone.nr_free_pages != (long)managed)
		return say(row, subject, nid, "NR_FREE_PAGES",
			   (unsigned long)zone.nr_free_pages, managed);
	if (zone.first_deferred_pfn != ~0UL)
		return say(row, subject, nid, "first_deferred_pfn",
			   zone.first_deferred_pfn, ~0UL);
	return same_large_blocks(row, subject, nid, &zone) &&
	       same_lists(row, subject, nid, &zone, ascending) &&
	       is_left_alone(row, subject, nid, ops->left_alone(nid));
}

/* That the count of all zones is the sum of theirs; each has been compared. */
static bool same_sum(const struct row *row, unsigned int variant)
{
	const struct deferred_ops *ops = launch_ops(variant);
	struct deferred_zone zone;

	ops->read(0, &zone);
	return zone.nr_free_of_all == (long)nr_managed(row) ||
	       say(row, launch.variant_names[variant], 0, "NR_FREE_PAGES of all zones",
		   (unsigned long)zone.nr_free_of_all, nr_managed(row));
}

static bool page_holds(const struct row *row, const char *subject, unsigned long pfn,
		       uint64_t expected, const char *what)
{
	const uint64_t *page = (const uint64_t *)
		(RAM_ADDRESS + (pfn - row->request.map_pfn) * FRAME_BYTES);

	for (size_t i = 0; i < FRAME_BYTES / sizeof(*page); i++) {
		if (page[i] == expected)
			continue;
		fprintf(stderr, "%s: %s: init_on_free: the page at pfn %#lx, %s, holds %#lx\n",
			row->name, subject, pfn, what, (unsigned long)page[i]);
		return false;
	}
	return true;
}

/* Freeing zeroes the pages that are freed, and no others. */
static bool contents_are_right(const struct row *row, const char *subject)
{
	const struct block *block = (const struct block *)row->blocks.start;
	const struct block *end = block + row->blocks.bytes / sizeof(*block);
	unsigned long pfn = row->request.map_pfn;
	unsigned long end_pfn = pfn + ram_bytes(row) / FRAME_BYTES;

	for (; pfn < end_pfn; pfn++) {
		bool is_free;

		if (block < end && pfn >= block->pfn + (1UL << block->order))
			block++;
		is_free = block < end && pfn >= block->pfn;
		if (!page_holds(row, subject, pfn, is_free ? 0 : ARENA_POISON,
				is_free ? "which is free" : "which nobody has freed"))
			return false;
	}
	return true;
}

static bool rules_are_kept(const struct row *row, const char *subject, const char *broken)
{
	if (broken)
		fprintf(stderr, "%s: %s: %s\n", row->name, subject, broken);
	return !broken;
}

/* With several CPUs for several nodes, which thread did what is unknown. */
static bool one_thread_a_node(const struct row *row, unsigned int nr_threads)
{
	return row->request.nr_cpus == 1 || nr_threads == 1;
}

static bool verify(const struct row *row, unsigned int variant, unsigned int nr_threads)
{
	const struct deferred_ops *ops = launch_ops(variant);
	const char *subject = launch.variant_names[variant];
	bool ascending = one_thread_a_node(row, nr_threads);

	for (unsigned int nid = 0; nid < row->request.nr_nodes; nid++)
		if (!same_zone(row, variant, nid, ascending))
			return false;
	if (!rules_are_kept(row, subject, ops->broken()) ||
	    !same_sum(row, variant) || !contents_are_right(row, subject))
		return false;
	return arena_is(row->name, subject, "the memory map", "page", arena.start,
			map_bytes(row), &row->image, launch.nr_cpus) &&
	       arena_is(row->name, subject, "the pageblock map", NULL, (void *)USAGE_ADDRESS,
			row->usage.bytes, &row->usage, 1) &&
	       arena_guard_is_whole(row->name, subject, arena.start + map_bytes(row),
				    (unsigned char)ARENA_POISON);
}

/* An allocation that came before the threads; not part of what is timed. */
static bool grow(const struct row *row, const struct deferred_ops *ops, const char *subject)
{
	struct deferred_zone zone;

	if (row->grow_order == NO_GROWTH)
		return true;
	if (ops->grow(row->grow_order) != !!row->grown_pages)
		return say(row, subject, 0, "what deferred_grow_zone() returned",
			   !row->grown_pages, !!row->grown_pages);
	ops->read(0, &zone);
	if (zone.first_deferred_pfn != row->grown_first_pfn)
		return say(row, subject, 0, "after growing, first_deferred_pfn",
			   zone.first_deferred_pfn, row->grown_first_pfn);
	if (zone.managed_pages != row->grown_pages)
		return say(row, subject, 0, "after growing, managed_pages",
			   zone.managed_pages, row->grown_pages);
	return true;
}

static bool sample_variant(struct rounds *rounds, const struct slot *slot)
{
	const struct row *row = rounds_row(rounds, slot);
	const struct deferred_ops *ops = launch_ops(slot->variant);
	const char *subject = launch.variant_names[slot->variant];
	unsigned int nr_threads;
	struct span span;
	bool verified;

	memset((void *)USAGE_ADDRESS, 0, row->usage.bytes);
	memset((void *)RAM_ADDRESS, (unsigned char)ARENA_POISON, ram_bytes(row));
	ops->prepare(&row->request);
	arena_set_guard(arena.start + map_bytes(row));
	rounds_set_pre_state(rounds);
	if (row->pre_state == PRE_LOOKALIKE)
		ops->look_free(&row->request);
	put_held(row);
	rounds_arena_written(rounds);
	if (!grow(row, ops, subject))
		return false;
	pool_use(slot->nr_threads);
	pool_reset_participants();

	span = span_begin();
	ops->run();
	span = launch_stop_clock(slot->variant, span);

	nr_threads = pool_nr_participants();
	pool_use(launch.nr_cpus);
	verified = verify(row, slot->variant, nr_threads);
	return rounds_print_sample(rounds, slot, nr_threads, span, verified);
}

static bool run_row(void *context)
{
	struct row *row = context;
	/* A fill writes as many bytes as there are descriptors, in one piece. */
	size_t bytes = written_bytes(row);
	struct rounds rounds = {
		.row = row->name,
		.nr_rounds = row->rounds,
		.nr_threads = nr_cpus_of(row),
		.nr_bytes = bytes,
		.context = row,
		.arena = &arena,
		.map_bytes = map_bytes(row),
		.pre_state = row->pre_state == PRE_EVICTED ? PRE_EVICTED : PRE_DIRTY,
		.fill = {
			.start = arena.start,
			.block_bytes = bytes,
			.stride_bytes = bytes,
			.nr_blocks = 1,
		},
	};

	rounds_add_variants(&rounds, sample_variant);
	if (row->limits)
		rounds_add_fills(&rounds);
	return rounds_run(&rounds);
}

static void prepare(void)
{
	launch_map_small(USAGE_ADDRESS, USAGE_BYTES);
}

static void map(const void *context, size_t nr_rows)
{
	size_t most_bytes = 0, most_ram = 0;
	const struct row *row = context;

	for (const struct row *end = row + nr_rows; row < end; row++) {
		most_bytes = max_size(most_bytes, map_bytes(row));
		most_ram = max_size(most_ram, ram_bytes(row));
	}
	if (most_ram)
		launch_map_small(RAM_ADDRESS, most_ram);
	arena = launch_map(MAP_ADDRESS, most_bytes, ARENA_GUARD_BYTES);
}

static const struct host_fact addresses[] = {
	{ "map", MAP_ADDRESS },
	{ }
};

const struct experiment experiment = {
	.name = "deferred-init",
	.addresses = addresses,
	.prepare = prepare,
	.map = map,
	.open_row = open_row,
	.run_row = run_row,
};
