// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of the zone-device experiment: rounds of every variant and every
 * kind of fill, each sample verified before the next. Results are JSON lines.
 */
#include <stdio.h>
#include <string.h>
#include "rounds.h"
#include "zone_device.h"

/* One point of the experiment's parameters, as its line has it. */
struct row {
#define ROW PLAN_MEMBER
#define REQUEST(...)
#include "row.def"
	struct zone_device_request request;
};

/*
 * Beside enum pre_state: as PRE_DIRTY, but every word is the pagemap's address,
 * so that descriptors look as if it had been their pagemap before, and in use.
 */
#define PRE_BOUND (PRE_UNTOUCHED + 1)

static const char *const pre_states[] = {
	[PRE_EVICTED] = "evicted",
	[PRE_DIRTY] = "dirty",
	[PRE_UNTOUCHED] = "untouched",
	[PRE_BOUND] = "bound",
	NULL
};

#include "plan_row.h"	/* row_layout */

/*
 * Where things lie, the same in every launch and for every variant, because
 * descriptors hold addresses: far from where Linux puts anything by itself.
 */
#define MAP_ADDRESS 0x200000000000UL
#define USAGE_ADDRESS 0x1ffff0000000UL
/* With the bit PG_reserved: PRE_BOUND. */
#define PGMAP_ADDRESS 0x1fffe0002000UL
#define USAGE_BYTES (16UL << 20)
#define PGMAP_BYTES 4096UL

static struct arena arena;

static void bind_before(size_t bytes)
{
	const unsigned long word = PGMAP_ADDRESS;

	for (size_t at = 0; at < bytes; at += sizeof(unsigned long))
		memcpy(arena.start + at, &word, sizeof(word));
}

static unsigned char *guard_of(const struct row *row)
{
	return arena.start + row->map_bytes;
}

static bool verify(const struct row *row, const char *subject)
{
	bool untouched = row->pre_state == PRE_UNTOUCHED;

	return arena_is(row->name, subject, "the memory map", "page", arena.start,
			row->map_bytes, &row->image, launch.nr_cpus) &&
	       arena_is(row->name, subject, "the pageblock map", NULL, (void *)USAGE_ADDRESS,
			row->usage.bytes, &row->usage, 1) &&
	       arena_guard_is_whole(row->name, subject, guard_of(row),
				    untouched ? 0 : ARENA_POISON & 0xff);
}

static bool sample_variant(struct rounds *rounds, const struct slot *slot)
{
	const struct row *row = rounds_row(rounds, slot);
	const char *subject = slot->subject;
	const struct zone_device_ops *ops = launch_ops(slot->variant);
	struct zone_device_request request = row->request;
	unsigned int nr_threads;
	bool linked, verified;
	struct span span;

	request.map = arena.start;
	request.pgmap = (void *)PGMAP_ADDRESS;
	request.usage = (void *)USAGE_ADDRESS;
	request.nr_cpus = request.nid ? 0 : slot->nr_threads;
	memset((void *)USAGE_ADDRESS, 0, USAGE_BYTES);
	ops->prepare(&request);
	if (row->pre_state != PRE_UNTOUCHED)
		arena_set_guard(guard_of(row));
	rounds_set_pre_state(rounds);
	if (row->pre_state == PRE_BOUND)
		bind_before(row->map_bytes);
	pool_reset_participants();

	span = span_begin();
	ops->run();
	span = launch_stop_clock(slot->variant, span);

	nr_threads = pool_nr_participants();
	rounds_arena_written(rounds);
	linked = ops->unlink();
	if (!linked)
		fprintf(stderr, "%s, %s: the list is not of every page in turn\n",
			row->name, subject);
	verified = linked && areas_are_as_expected(row->name, subject, "", ops->left_alone()) &&
		   verify(row, subject);
	return rounds_print_sample(rounds, slot, nr_threads, span, verified);
}

static bool run_row(void *context)
{
	const struct row *row = context;
	struct rounds rounds = {
		.row = row->name,
		.nr_rounds = row->rounds,
		.nr_threads = row->threads && row->threads < launch.nr_cpus ?
			      row->threads : launch.nr_cpus,
		.nr_bytes = row->block_bytes * row->nr_blocks,
		.context = context,
		.arena = &arena,
		.map_bytes = row->map_bytes,
		.pre_state = row->pre_state == PRE_BOUND ? PRE_DIRTY : row->pre_state,
		.fill = {
			.start = arena.start + row->fill_offset,
			.block_bytes = row->block_bytes,
			.stride_bytes = row->stride_bytes,
			.nr_blocks = row->nr_blocks,	/* 0, if an altmap takes all */
		},
	};

	if (row->usage.bytes > USAGE_BYTES)
		die(RUNNER_USAGE, "%s: too many sections", row->name);
	rounds_add_variants(&rounds, sample_variant);
	rounds_add_fills(&rounds);
	return rounds_run(&rounds);
}

static void prepare(void)
{
	launch_map_small(USAGE_ADDRESS, USAGE_BYTES);
	launch_map_small(PGMAP_ADDRESS, PGMAP_BYTES);
}

static void map(const void *rows, size_t nr_rows)
{
	arena = launch_map(MAP_ADDRESS, launch_most(rows, nr_rows, map_bytes), ARENA_GUARD_BYTES);
}

static const struct host_fact addresses[] = {
	{ "map", MAP_ADDRESS },
	{ "pgmap", PGMAP_ADDRESS },
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
