// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of the zone-device experiment: rounds of every variant and every
 * kind of fill, each sample verified before the next. Results are JSON lines.
 */
#include <stdio.h>
#include <string.h>
#include "launch.h"
#include "plan.h"
#include "rounds.h"
#include "zone_device.h"

/**
 * struct row - one point of the experiment's parameters
 * @name: As the record spells it.
 * @rounds: How often everything is measured.
 * @threads: Most CPUs to use; 0 = all.
 * @pre_state: enum pre_state; set before every sample.
 * @request: What the kernel is asked; the addresses are filled in later.
 * @map_bytes: Bytes of the map to check, the last compound's overhang included.
 * @fill: What the kernel writes of them, for the limit; without an address.
 * @fill_offset: Where that begins in the map.
 * @image: The oracle's map.
 * @usage_image: The oracle's pageblock bits.
 */
struct row {
	char name[64];
	unsigned int rounds;
	unsigned int threads;
	unsigned int pre_state;
	struct zone_device_request request;
	size_t map_bytes;
	struct fill_range fill;
	size_t fill_offset;
	char image_path[256];
	char usage_path[256];
	struct image image;
	struct image usage_image;
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

static const struct plan_field fields[] = {
	PLAN_FIELD("name", PLAN_TEXT, struct row, name),
	PLAN_FIELD("rounds", PLAN_UINT, struct row, rounds),
	PLAN_FIELD("threads", PLAN_UINT, struct row, threads),
	PLAN_FIELD_CHOICE("pre_state", pre_states, struct row, pre_state),
	PLAN_FIELD("start_pfn", PLAN_ULONG, struct row, request.start_pfn),
	PLAN_FIELD("nr_pages", PLAN_ULONG, struct row, request.nr_pages),
	PLAN_FIELD("skip_pages", PLAN_ULONG, struct row, request.skip_pages),
	PLAN_FIELD("order", PLAN_UINT, struct row, request.order),
	PLAN_FIELD("type", PLAN_UINT, struct row, request.type),
	PLAN_FIELD("early_pages", PLAN_ULONG, struct row, request.early_pages),
	PLAN_FIELD("old_blocks", PLAN_UINT, struct row, request.old_blocks),
	PLAN_FIELD("nid", PLAN_UINT, struct row, request.nid),
	PLAN_FIELD("chunk_pages", PLAN_ULONG, struct row, request.chunk_pages),
	PLAN_FIELD("zero", PLAN_UINT, struct row, request.zero),
	PLAN_FIELD("poison", PLAN_UINT, struct row, request.poison),
	PLAN_FIELD("list", PLAN_UINT, struct row, request.list),
	PLAN_FIELD("map_bytes", PLAN_ULONG, struct row, map_bytes),
	PLAN_FIELD("fill_offset", PLAN_ULONG, struct row, fill_offset),
	PLAN_FIELD("block_bytes", PLAN_ULONG, struct row, fill.block_bytes),
	PLAN_FIELD("stride_bytes", PLAN_ULONG, struct row, fill.stride_bytes),
	PLAN_FIELD("nr_blocks", PLAN_ULONG, struct row, fill.nr_blocks),
	PLAN_FIELD("image", PLAN_TEXT, struct row, image_path),
	PLAN_FIELD("usage", PLAN_TEXT, struct row, usage_path),
	{ .key = NULL },
};

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

static bool is_left_alone(const struct row *row, const char *subject,
			  const struct host_area *area)
{
	char who[256];

	snprintf(who, sizeof(who), "%s: %s", row->name, subject);
	while (area->type && area_is_as_expected(who, "", area))
		area++;
	return !area->type;
}

static bool verify(const struct row *row, const char *subject)
{
	bool untouched = row->pre_state == PRE_UNTOUCHED;

	return arena_is(row->name, subject, "the memory map", "page", arena.start,
			row->map_bytes, &row->image, launch.nr_cpus) &&
	       arena_is(row->name, subject, "the pageblock map", NULL, (void *)USAGE_ADDRESS,
			row->usage_image.bytes, &row->usage_image, 1) &&
	       arena_guard_is_whole(row->name, guard_of(row), untouched ? 0 : ARENA_POISON & 0xff);
}

static bool sample_variant(const struct rounds *rounds, unsigned int round,
			   const struct slot *slot)
{
	const struct row *row = rounds->context;
	const char *subject = launch.variant_names[slot->variant];
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
	rounds_arena_written();
	linked = ops->unlink();
	if (!linked)
		fprintf(stderr, "%s, %s: the list is not of every page in turn\n",
			row->name, subject);
	verified = linked && is_left_alone(row, subject, ops->left_alone()) &&
		   verify(row, subject);
	rounds_print_sample(rounds, round, slot, nr_threads, span, verified);
	return verified;
}

static bool run_row(const struct row *row)
{
	struct rounds rounds = {
		.row = row->name,
		.nr_rounds = row->rounds,
		.nr_threads = row->threads && row->threads < launch.nr_cpus ?
			      row->threads : launch.nr_cpus,
		.limits = true,
		.arena = &arena,
		.map_bytes = row->map_bytes,
		.pre_state = row->pre_state == PRE_BOUND ? PRE_DIRTY : row->pre_state,
		.fill = row->fill,	/* none, if an altmap takes the whole range */
		.sample_variant = sample_variant,
		.context = row,
	};

	rounds.fill.start = arena.start + row->fill_offset;
	return rounds_run(&rounds);
}

static void prepare(void)
{
	launch_map_small(USAGE_ADDRESS, USAGE_BYTES);
	launch_map_small(PGMAP_ADDRESS, PGMAP_BYTES);
}

static bool run_plan(const char *path)
{
	size_t nr_rows, most_bytes = 0;
	struct row *rows = plan_read(path, fields, sizeof(*rows), &nr_rows);

	for (size_t i = 0; i < nr_rows; i++)
		if (rows[i].map_bytes > most_bytes)
			most_bytes = rows[i].map_bytes;
	arena = arena_map(MAP_ADDRESS, most_bytes + ARENA_GUARD_BYTES, launch.nr_cpus);
	launch.huge_ratio = (double)arena_huge_bytes(&arena) / (double)most_bytes;
	for (size_t i = 0; i < nr_rows; i++) {
		rows[i].image = image_map(rows[i].image_path);
		rows[i].usage_image = image_map(rows[i].usage_path);
		if (rows[i].usage_image.bytes > USAGE_BYTES)
			die(RUNNER_USAGE, "%s: too many sections", rows[i].name);
		if (!run_row(&rows[i]))
			return false;
	}
	return true;
}

static const struct host_fact addresses[] = {
	{ "map", MAP_ADDRESS },
	{ "pgmap", PGMAP_ADDRESS },
	{ "poison", ARENA_POISON },
	{ }
};

int main(int argc, char **argv)
{
	static const struct experiment zone_device = {
		.name = "zone-device",
		.addresses = addresses,
		.prepare = prepare,
		.run = run_plan,
	};

	return launch_main(argc, argv, &zone_device);
}
