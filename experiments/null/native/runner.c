// SPDX-License-Identifier: GPL-2.0-only
/* One launch: rounds of every variant and every kind of fill, each verified. */
#include "null.h"
#include "rounds.h"

#define ADDRESS 0x200000000000UL

struct row {
#define ROW PLAN_MEMBER
#include "row.def"
};

#include "plan_row.h"	/* row_layout */

static struct arena arena;	/* what is written, and behind it what is read */
static unsigned long *source;

static bool sample_variant(struct rounds *rounds, const struct slot *slot)
{
	const struct null_ops *ops = launch_ops(slot->variant);
	const struct row *row = rounds->context;
	struct span span;
	bool verified;

	rounds_set_pre_state(rounds);
	span = span_begin();
	ops->complement((unsigned long *)arena.start, source, (unsigned int)row->bits);
	span = launch_stop_clock(slot->variant, span);
	rounds_arena_written(rounds);
	verified = arena_is(row->name, slot->subject, "the bitmap", NULL,
			    arena.start, row->image.bytes, &row->image, 1);
	return rounds_print_sample(rounds, slot, 1, span, verified);
}

static bool run_row(void *context)
{
	const struct row *row = context;
	struct rounds rounds = {
		.row = row->name,
		.nr_rounds = row->rounds,
		.nr_threads = 1,
		.nr_bytes = row->bits / 8,
		.context = context,
		.arena = &arena,
		.map_bytes = row->image.bytes,
		.pre_state = PRE_DIRTY,
		.fill = {
			.start = arena.start,
			.block_bytes = row->bits / 8,
			.stride_bytes = row->bits / 8,
			.nr_blocks = 1,
		},
	};

	rounds_add_variants(&rounds, sample_variant);
	rounds_add_fills(&rounds);
	return rounds_run(&rounds);
}

static void map(const void *context, size_t nr_rows)
{
	const struct row *row = context;
	size_t bytes = ARENA_GUARD_BYTES;

	for (size_t i = 0; i < nr_rows; i++)
		bytes = max_size(bytes, (row[i].bits + 63) / 64 * 8 + 8);	/* its image's */
	arena = arena_map(ADDRESS, 2 * bytes, 1);
	source = (unsigned long *)(arena.start + bytes);
	for (size_t i = 0; i < bytes / sizeof(*source); i++)
		source[i] = i;
}

static const struct host_fact addresses[] = {
	{ "poison", ARENA_POISON },
	{ }
};

const struct experiment experiment = {
	.name = "null",
	.addresses = addresses,
	.map = map,
	.run_row = run_row,
};
