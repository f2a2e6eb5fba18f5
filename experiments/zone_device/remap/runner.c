// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of memremap_pages() and memunmap_pages(): rounds of every variant
 * and every kind of fill. For each sample a node is booted, and all that comes
 * of both calls is looked at, whichever of them is timed.
 */
#include <stdio.h>
#include <string.h>
#include "remap.h"
#include "rounds.h"

/**
 * struct row - what its line says, and what is known of it
 * @layout: By variant, of the page tables behind each call; 0 = it is not known.
 */
struct row {
#define ROW PLAN_MEMBER
#define REQUEST(...)
#include "row.def"
	struct remap_request request;
	unsigned long layout[MOST_VARIANTS][2];
};

static const char *const pre_states[] = {
	[PRE_EVICTED] = "evicted",
	[PRE_DIRTY] = "dirty",
	[PRE_UNTOUCHED] = "untouched",
	NULL
};

#include "plan_row.h"	/* row_layout */

#define DESCRIPTOR_BYTES 64UL
#define PAGE_BYTES 4096UL
#define USAGE_ADDRESS 0x1ffff0000000UL
#define USAGE_BYTES (16UL << 20)
#define PGMAP_ADDRESS 0x1fffe0002000UL
#define PGMAP_BYTES 4096UL

static struct arena arena;

/* Their names, one behind the other. */
static const char words[] =
#define STATE(name) #name "\0"
#include "state.def"
;

#define NR_WORDS (offsetof(struct remap_state, layout) / sizeof(unsigned long))
/* What the oracle says of a word that it leaves open. */
#define OPEN (~0UL)

static bool state_is(const struct row *row, const char *subject, const char *call,
		     const struct remap_state *state, const struct image *expected)
{
	const unsigned long *is = (const unsigned long *)state;
	const char *word = words;
	bool right = true;

	if (image_nr_words(expected) != NR_WORDS)
		die(RUNNER_USAGE, "%s: the oracle says %zu words, not %zu", row->name,
		    image_nr_words(expected), NR_WORDS);
	for (size_t i = 0; i < NR_WORDS; i++, word += strlen(word) + 1) {
		if (expected->words[i] == OPEN || is[i] == expected->words[i])
			continue;
		fprintf(stderr, "%s: %s: behind %s, %s is %lu, not %lu\n", row->name, subject,
			call, word, is[i], expected->words[i]);
		right = false;
	}
	return right;
}

/* Each round begins with the same node: what is mapped where must be the same. */
static bool layout_is_known(struct row *row, const struct slot *slot, unsigned int behind,
			    const struct remap_state *state)
{
	unsigned long *known = &row->layout[slot->variant][behind];

	if (!*known)
		*known = state->layout;
	if (*known == state->layout)
		return true;
	fprintf(stderr, "%s: %s: page tables are not those of the round before\n", row->name,
		slot->subject);
	return false;
}

static bool map_is(const struct row *row, const char *subject, const struct remap_ops *ops)
{
	unsigned char guard = row->pre_state == PRE_UNTOUCHED ? 0 : ARENA_POISON & 0xff;

	memset((void *)USAGE_ADDRESS, 0, USAGE_BYTES);
	ops->read_usage((void *)USAGE_ADDRESS);
	return arena_is(row->name, subject, "the memory map", "page", arena.start,
			row->map_bytes, &row->image, launch.nr_cpus) &&
	       arena_is(row->name, subject, "the pageblock map", NULL, (void *)USAGE_ADDRESS,
			row->usage.bytes, &row->usage, 1) &&
	       arena_guard_is_whole(row->name, subject, arena.start + row->map_bytes, guard);
}

static bool check_mapped(struct row *row, const struct slot *slot)
{
	const struct remap_ops *ops = launch_ops(slot->variant);
	struct remap_state state;

	ops->settle();
	ops->read(&state);
	return state_is(row, slot->subject, "memremap_pages()", &state, &row->mapped) &&
	       layout_is_known(row, slot, 0, &state) && map_is(row, slot->subject, ops);
}

static bool check_unmapped(struct row *row, const struct slot *slot)
{
	const struct remap_ops *ops = launch_ops(slot->variant);
	struct remap_state state;

	ops->settle();
	ops->read(&state);
	return state_is(row, slot->subject, "memunmap_pages()", &state, &row->unmapped) &&
	       layout_is_known(row, slot, 1, &state);
}

static struct span timed(const struct slot *slot, void (*call)(void), unsigned int *nr_threads)
{
	struct span span;

	pool_reset_participants();
	span = span_begin();
	call();
	span = launch_stop_clock(slot->variant, span);
	*nr_threads = pool_nr_participants();
	return span;
}

static bool sample_variant(struct rounds *rounds, const struct slot *slot)
{
	struct row *row = rounds_row(rounds, slot);
	const struct remap_ops *ops = launch_ops(slot->variant);
	struct remap_request request = row->request;
	/* A sample has some time, even if it is wrong before the clock runs. */
	struct span span = { .time_ns = 1 };
	unsigned int nr_threads = 1;
	bool verified;

	request.pgmap = (void *)PGMAP_ADDRESS;
	request.nr_cpus = slot->nr_threads;
	ops->prepare(&request);
	if (row->pre_state != PRE_UNTOUCHED)
		arena_set_guard(arena.start + row->map_bytes);
	rounds_arena_written(rounds);
	rounds_set_pre_state(rounds);
	if (row->unmaps)
		ops->map();
	else
		span = timed(slot, ops->map, &nr_threads);
	rounds_arena_written(rounds);
	verified = check_mapped(row, slot);
	if (verified && row->unmaps)
		span = timed(slot, ops->unmap, &nr_threads);
	else if (verified)
		ops->unmap();
	verified = verified && check_unmapped(row, slot);
	return rounds_print_sample(rounds, slot, nr_threads, span, verified);
}

static bool run_row(void *context)
{
	struct row *row = context;
	struct rounds rounds = {
		.row = row->name,
		.nr_rounds = row->rounds,
		.nr_threads = row->threads && row->threads < launch.nr_cpus ?
			      row->threads : launch.nr_cpus,
		/* The first call touches page tables that no process has touched before. */
		.warms_up = row->pre_state != PRE_UNTOUCHED,
		.nr_bytes = row->block_bytes * row->nr_blocks,
		.context = context,
		.arena = &arena,
		.map_bytes = row->map_bytes,
		.pre_state = row->pre_state,
		.fill = {
			.start = arena.start + row->fill_offset,
			.block_bytes = row->block_bytes,
			.stride_bytes = row->stride_bytes,
			.nr_blocks = row->unmaps ? 0 : row->nr_blocks,
		},
	};

	if (row->usage.bytes > USAGE_BYTES || !row->request.node_pages ||
	    row->request.node_pages % NODE_STEP)
		die(RUNNER_USAGE, "%s: no such node, or too many sections", row->name);
	rounds_add_variants(&rounds, sample_variant);
	rounds_add_fills(&rounds);
	return rounds_run(&rounds);
}

static void prepare(void)
{
	launch_map_small(USAGE_ADDRESS, USAGE_BYTES);
	launch_map_small(PGMAP_ADDRESS, PGMAP_BYTES);
}

/*
 * The device's map is measured in. The node's frames are touched where page
 * tables and objects lie in them, which the first round of a row does: of the
 * frames that hold the map the contents are that arena.
 */
static void map(const void *rows, size_t nr_rows)
{
	size_t node = launch_most(rows, nr_rows, request.node_pages);
	unsigned long start_pfn = ((const struct row *)rows)->request.start_pfn;

	for (size_t i = 0; i < nr_rows; i++)
		if (((const struct row *)rows)[i].request.start_pfn != start_pfn)
			die(RUNNER_USAGE, "all rows of a plan begin at the same frame");
	arena = launch_map(REMAP_MAP_ADDRESS + start_pfn * DESCRIPTOR_BYTES,
			   launch_most(rows, nr_rows, map_bytes), ARENA_GUARD_BYTES);
	launch_map(REMAP_MAP_ADDRESS + NODE_PFN * DESCRIPTOR_BYTES, node * DESCRIPTOR_BYTES, 0);
	launch_map_small(REMAP_RAM_ADDRESS + NODE_PFN * PAGE_BYTES, node * PAGE_BYTES);
}

static const struct host_fact addresses[] = {
	{ "pgmap", PGMAP_ADDRESS },
	{ "map", REMAP_MAP_ADDRESS },
	{ "ram", REMAP_RAM_ADDRESS },
	{ "node_pfn", NODE_PFN },
	{ "poison", ARENA_POISON },
	{ }
};

const struct experiment experiment = {
	.name = "zone-device",
	.addresses = addresses,
	.prepare = prepare,
	.map = map,
	.run_row = run_row,
};
