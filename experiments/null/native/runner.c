// SPDX-License-Identifier: GPL-2.0-only
/* One launch: rounds of every variant and every kind of fill, each verified. */
#include "launch.h"
#include "null.h"
#include "plan.h"
#include "rounds.h"

#define ADDRESS 0x200000000000UL

struct row {
	char name[64];
	unsigned int rounds;
	unsigned long bits;
	char image_path[256];
	struct image image;
};

static const struct plan_field fields[] = {
	PLAN_FIELD("name", PLAN_TEXT, struct row, name),
	PLAN_FIELD("rounds", PLAN_UINT, struct row, rounds),
	PLAN_FIELD("bits", PLAN_ULONG, struct row, bits),
	PLAN_FIELD("image", PLAN_TEXT, struct row, image_path),
	{ .key = NULL },
};

static struct arena arena;	/* what is written, and behind it what is read */
static unsigned long *source;

static bool sample_variant(const struct rounds *rounds, unsigned int round,
			   const struct slot *slot)
{
	const struct null_ops *ops = launch_ops(slot->variant);
	const struct row *row = rounds->context;
	struct span span;
	bool verified;

	rounds_set_pre_state(rounds);
	span = span_begin();
	ops->complement((unsigned long *)arena.start, source, (unsigned int)row->bits);
	span = launch_stop_clock(slot->variant, span);
	rounds_arena_written();
	verified = arena_is(row->name, launch.variant_names[slot->variant], "the bitmap", NULL,
			    arena.start, row->image.bytes, &row->image, 1);
	rounds_print_sample(rounds, round, slot, 1, span, verified);
	return verified;
}

static bool run_row(const struct row *row)
{
	const struct rounds rounds = {
		.row = row->name,
		.nr_rounds = row->rounds,
		.nr_threads = 1,
		.limits = true,
		.arena = &arena,
		.map_bytes = row->image.bytes,
		.pre_state = PRE_DIRTY,
		.fill = {
			.start = arena.start,
			.block_bytes = row->bits / 8,
			.stride_bytes = row->bits / 8,
			.nr_blocks = 1,
		},
		.sample_variant = sample_variant,
		.context = row,
	};

	return rounds_run(&rounds);
}

static bool run_plan(const char *path)
{
	size_t nr_rows, bytes = ARENA_GUARD_BYTES;
	struct row *rows = plan_read(path, fields, sizeof(*rows), &nr_rows);

	for (size_t i = 0; i < nr_rows; i++) {
		rows[i].image = image_map(rows[i].image_path);
		if (rows[i].image.bytes > bytes)
			bytes = rows[i].image.bytes;
	}
	arena = arena_map(ADDRESS, 2 * bytes, 1);
	launch.huge_ratio = 1;	/* that its pages are small disturbs nobody */
	source = (unsigned long *)(arena.start + bytes);
	for (size_t i = 0; i < bytes / sizeof(*source); i++)
		source[i] = i;
	for (size_t i = 0; i < nr_rows; i++)
		if (!run_row(&rows[i]))
			return false;
	return true;
}

static void prepare(void)
{
}

int main(int argc, char **argv)
{
	static const struct host_fact addresses[] = {
		{ "poison", ARENA_POISON },
		{ }
	};
	static const struct experiment null = {
		.name = "null",
		.addresses = addresses,
		.prepare = prepare,
		.run = run_plan,
	};

	return launch_main(argc, argv, &null);
}
