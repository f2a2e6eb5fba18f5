// SPDX-License-Identifier: GPL-2.0-only
/* One launch of the zone-contiguous experiment: rounds of every variant, each verified. */
#include <stdio.h>
#include <string.h>
#include "rounds.h"
#include "zone_contiguous.h"

/* One zone, as its line has it. */
struct row {
#define ROW PLAN_MEMBER
#define REQUEST(...)
#include "row.def"
	struct zone_request request;
};

#include "plan_row.h"	/* row_layout */

#define MAP_ADDRESS 0x200000000000UL
#define USAGE_ADDRESS 0x1ffff0000000UL
#define USAGE_BYTES (16UL << 20)
#define USAGE_BYTES_PER_SECTION 256UL	/* more than the kernel keeps of one */

static struct arena arena;

static bool is_right(const struct row *row, const char *subject, unsigned long nr_contiguous)
{
	if (nr_contiguous == row->nr_contiguous)
		return true;
	fprintf(stderr, "%s: %s: %lu calls found the zone contiguous, the oracle says %lu\n",
		row->name, subject, nr_contiguous, row->nr_contiguous);
	return false;
}

static bool sample_variant(struct rounds *rounds, const struct slot *slot)
{
	const struct row *row = rounds->context;
	const struct zone_ops *ops = launch_ops(slot->variant);
	struct zone_request request = row->request;
	unsigned long nr_contiguous;
	struct span span;
	bool verified;

	request.map = arena.start;
	request.usage = (void *)USAGE_ADDRESS;
	request.sections = (const void *)row->sections.start;
	ops->prepare(&request);

	span = span_begin();
	nr_contiguous = ops->run();
	span = launch_stop_clock(slot->variant, span);

	verified = is_right(row, slot->subject, nr_contiguous) &&
		   areas_are_as_expected(row->name, slot->subject, "", ops->left_alone()) &&
		   arena_is(row->name, slot->subject, "the memory map", "page", arena.start,
			    row->map_bytes, &row->map, launch.nr_cpus);
	return rounds_print_sample(rounds, slot, 1, span, verified);
}

static bool run_row(void *context)
{
	const struct row *row = context;
	size_t nr_sections = row->sections.bytes / sizeof(struct section_state);
	struct rounds rounds = {
		.row = row->name,
		.nr_rounds = row->rounds,
		.nr_threads = 1,
		.warms_up = true,
		.nr_bytes = 0,	/* the map is only looked at */
		.context = context,
	};

	if (nr_sections * USAGE_BYTES_PER_SECTION > USAGE_BYTES)
		die(RUNNER_USAGE, "%s: too many sections", row->name);
	/* What is only looked at stays in whichever caches it fits into, as it does in a kernel. */
	for (size_t at = 0; at < row->map_bytes; at += row->map.bytes)
		memcpy(arena.start + at, row->map.start, row->map.bytes);
	rounds_add_variants(&rounds, sample_variant);
	return rounds_run(&rounds);
}

static void prepare(void)
{
	launch_map_small(USAGE_ADDRESS, USAGE_BYTES);
}

static void map(const void *rows, size_t nr_rows)
{
	arena = launch_map(MAP_ADDRESS, launch_most(rows, nr_rows, map_bytes), 0);
}

static const struct host_fact addresses[] = {
	{ "map", MAP_ADDRESS },
	{ }
};

const struct experiment experiment = {
	.name = "zone-contiguous",
	.addresses = addresses,
	.prepare = prepare,
	.map = map,
	.run_row = run_row,
};
