// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of the zone-device experiment: rounds of every variant and every
 * kind of fill, each sample verified before the next. Results are JSON lines.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "plan.h"
#include "program.h"
#include "zone_device.h"

/*
 * Where things lie, the same in every launch and for every variant, because
 * descriptors hold addresses: far from where Linux puts anything by itself.
 */
#define MAP_ADDRESS 0x200000000000UL
#define USAGE_ADDRESS 0x1ffff0000000UL
#define PGMAP_ADDRESS 0x1fffe0000000UL
#define USAGE_BYTES (16UL << 20)
#define PGMAP_BYTES 4096UL

#define MOST_VARIANTS 32	/* variants.py refuses more */

/* Written beyond the map? These bytes behind it must stay as they were. */
#define GUARD_BYTES 65536UL
#define MOST_SLOTS 64

struct slot {
	unsigned int variant;
	const struct fill_kind *fill;	/* NULL = the variant */
	unsigned int nr_threads;
};

static struct {
	struct arena arena;
	unsigned int number;
	unsigned int nr_cpus;
	unsigned int nr_variants;
	char *variant_names[MOST_VARIANTS];
	unsigned long nr_samples;
	double huge_ratio;	/* of the arena, when it had been touched */
	uint64_t seed;
	bool evicted;	/* the arena is known to be in PRE_EVICTED */
} launch;

static void *map_small(uintptr_t address, size_t bytes)
{
	void *start = mmap((void *)address, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (start != (void *)address)
		die(RUNNER_NO_RESOURCE, "cannot map %zu bytes at %#lx", bytes, address);
	return start;
}

static const struct zone_device_ops *ops_of(unsigned int variant)
{
	return __start_ream_kernels[variant]->ops;
}

static void set_pre_state(const struct row *row)
{
	if (row->pre_state == PRE_EVICTED && launch.evicted)
		return;
	arena_set_pre_state(&launch.arena, row->map_bytes, row->pre_state, launch.nr_cpus);
	launch.evicted = row->pre_state == PRE_EVICTED;
}

static void print_sample(const struct row *row, unsigned int round, const struct slot *slot,
			 unsigned int nr_threads, uint64_t time_ns, bool verified)
{
	printf("{\"row\": \"%s\", \"launch\": %u, \"round\": %u, ",
	       row->name, launch.number, round);
	printf("\"role\": \"%s\", \"subject\": \"%s\", ",
	       slot->fill ? "limit" : "variant",
	       slot->fill ? slot->fill->name : launch.variant_names[slot->variant]);
	printf("\"threads\": %u, \"time_ns\": %lu, \"nr_bytes\": %zu, \"verified\": %s}\n",
	       nr_threads, (unsigned long)time_ns, row->fill.block_bytes * row->fill.nr_blocks,
	       verified ? "true" : "false");
	launch.nr_samples++;
}

static void print_difference(const struct row *row, const char *subject, const char *where,
			     size_t offset, const unsigned char *is, const struct image *image)
{
	const unsigned char *expected = image->start + (offset & ~63UL) % image->bytes;

	fprintf(stderr, "%s: %s: %s differs from the oracle at byte %zu (entry %zu)\n  is      ",
		row->name, subject, where, offset, offset / 64);
	for (unsigned int i = 0; i < 64; i++)
		fprintf(stderr, "%s%02x", i % 8 ? "" : " ", is[(offset & ~63UL) + i]);
	fprintf(stderr, "\n  expected");
	for (unsigned int i = 0; i < 64; i++)
		fprintf(stderr, "%s%02x", i % 8 ? "" : " ", expected[i]);
	fputc('\n', stderr);
}

static unsigned char *guard_of(const struct row *row)
{
	return launch.arena.start + row->map_bytes;
}

static bool guard_is_whole(const struct row *row)
{
	unsigned char expected = row->pre_state == PRE_UNTOUCHED ? 0 : (unsigned char)ARENA_POISON;

	for (size_t i = 0; i < GUARD_BYTES; i++) {
		if (guard_of(row)[i] != expected) {
			fprintf(stderr, "%s: byte %zu behind the memory map was written\n",
				row->name, i);
			return false;
		}
	}
	return true;
}

static bool verify(const struct row *row, const char *subject)
{
	size_t offset = arena_first_difference(launch.arena.start, row->map_bytes,
					       &row->image, launch.nr_cpus);

	if (offset != ARENA_NO_DIFFERENCE) {
		print_difference(row, subject, "the memory map", offset,
				 launch.arena.start, &row->image);
		return false;
	}
	offset = arena_first_difference((void *)USAGE_ADDRESS, row->usage_image.bytes,
					&row->usage_image, 1);
	if (offset != ARENA_NO_DIFFERENCE)
		print_difference(row, subject, "the pageblock map", offset,
				 (void *)USAGE_ADDRESS, &row->usage_image);
	return offset == ARENA_NO_DIFFERENCE && guard_is_whole(row);
}

static bool sample_variant(const struct row *row, unsigned int round, const struct slot *slot)
{
	const struct zone_device_ops *ops = ops_of(slot->variant);
	struct zone_device_request request = row->request;
	uint64_t start_ns, time_ns;
	unsigned int nr_threads;
	bool verified;

	request.map = launch.arena.start;
	request.pgmap = (void *)PGMAP_ADDRESS;
	request.usage = (void *)USAGE_ADDRESS;
	request.nr_cpus = request.nid ? 0 : slot->nr_threads;
	memset((void *)USAGE_ADDRESS, 0, USAGE_BYTES);
	ops->prepare(&request);
	if (row->pre_state != PRE_UNTOUCHED)
		memset(guard_of(row), (unsigned char)ARENA_POISON, GUARD_BYTES);
	set_pre_state(row);
	pool_reset_participants();

	start_ns = now_ns();
	ops->run();
	time_ns = now_ns() - start_ns;

	nr_threads = pool_nr_participants();
	launch.evicted = false;
	verified = verify(row, launch.variant_names[slot->variant]);
	print_sample(row, round, slot, nr_threads, time_ns, verified);
	return verified;
}

static void sample_fill(const struct row *row, unsigned int round, const struct slot *slot)
{
	struct fill_range range = row->fill;
	uint64_t start_ns, time_ns;

	if (!range.nr_blocks || !range.block_bytes)
		return;	/* an altmap takes the whole range */
	range.start = launch.arena.start + row->fill_offset;
	set_pre_state(row);
	start_ns = now_ns();
	fill_range(slot->fill, &range, ARENA_POISON, slot->nr_threads);
	time_ns = now_ns() - start_ns;
	launch.evicted = launch.evicted && slot->fill->streams;
	print_sample(row, round, slot, slot->nr_threads, time_ns, true);
}

static unsigned int plan_slots(struct slot *slots, unsigned int nr_threads)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < launch.nr_variants; i++)
		slots[nr++] = (struct slot){ .variant = i, .nr_threads = nr_threads };
	for (const struct fill_kind *kind = fill_kinds; kind->name; kind++) {
		if (!kind->available())
			continue;
		slots[nr++] = (struct slot){ .fill = kind, .nr_threads = 1 };
		if (nr_threads > 1)
			slots[nr++] = (struct slot){ .fill = kind, .nr_threads = nr_threads };
	}
	return nr;
}

static bool run_row(const struct row *row)
{
	unsigned int nr_threads = row->threads && row->threads < launch.nr_cpus ?
				  row->threads : launch.nr_cpus;
	struct slot slots[MOST_SLOTS];
	unsigned int order[MOST_SLOTS];
	unsigned int nr = plan_slots(slots, nr_threads);

	launch.evicted = false;
	for (unsigned int round = 0; round < row->rounds; round++) {
		random_order(order, nr, &launch.seed);
		for (unsigned int i = 0; i < nr; i++) {
			const struct slot *slot = &slots[order[i]];

			if (slot->fill)
				sample_fill(row, round, slot);
			else if (!sample_variant(row, round, slot))
				return false;
		}
	}
	return true;
}

static void print_facts(void)
{
	printf("{\"map\": %lu, \"pgmap\": %lu, \"poison\": %llu, \"variants\": {",
	       MAP_ADDRESS, PGMAP_ADDRESS, (unsigned long long)ARENA_POISON);
	for (unsigned int i = 0; i < launch.nr_variants; i++) {
		const struct host_fact *facts = __start_ream_kernels[i]->facts;

		printf("%s\"%s\": {", i ? ", " : "", launch.variant_names[i]);
		for (const struct host_fact *fact = facts; fact->name; fact++)
			printf("%s\"%s\": %lu", fact == facts ? "" : ", ",
			       fact->name, fact->value);
		putchar('}');
	}
	puts("}}");
}

static void print_stub(unsigned int variant, const struct host_stub *stub, bool first)
{
	printf("%s{\"variant\": \"%s\", \"name\": \"%s\", ", first ? "" : ", ",
	       launch.variant_names[variant], stub->name);
	printf("\"honesty\": \"%s\", \"calls\": %lu}", stub->honesty, stub->nr_calls);
}

static void print_end(void)
{
	bool first = true;

	printf("{\"end\": true, \"nr_samples\": %lu, \"nr_cpus\": %u, ",
	       launch.nr_samples, launch.nr_cpus);
	printf("\"huge_ratio\": %.3f, \"stubs\": [", launch.huge_ratio);
	for (unsigned int i = 0; i < launch.nr_variants; i++) {
		struct host_stub *const *stub = __start_ream_kernels[i]->stubs;

		for (; *stub; stub++) {
			if (!(*stub)->nr_calls)
				continue;
			print_stub(i, *stub, first);
			first = false;
		}
	}
	puts("]}");
}

static void name_variants(char *names)
{
	unsigned int nr_linked = (unsigned int)(__stop_ream_kernels - __start_ream_kernels);

	for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
		if (launch.nr_variants == MOST_VARIANTS)
			die(RUNNER_USAGE, "more than %u variants", MOST_VARIANTS);
		launch.variant_names[launch.nr_variants++] = name;
	}
	if (launch.nr_variants != nr_linked)
		die(RUNNER_USAGE, "%u variants are linked, %u are named",
		    nr_linked, launch.nr_variants);
}

static int run_plan(struct plan *plan)
{
	size_t most_bytes = 0;

	for (size_t i = 0; i < plan->nr_rows; i++)
		if (plan->rows[i].map_bytes > most_bytes)
			most_bytes = plan->rows[i].map_bytes;
	launch.arena = arena_map(MAP_ADDRESS, most_bytes + GUARD_BYTES, launch.nr_cpus);
	launch.huge_ratio = (double)arena_huge_bytes(&launch.arena) / (double)most_bytes;
	for (size_t i = 0; i < plan->nr_rows; i++) {
		plan_open_images(&plan->rows[i]);
		if (plan->rows[i].usage_image.bytes > USAGE_BYTES)
			die(RUNNER_USAGE, "%s: too many sections", plan->rows[i].name);
		if (!run_row(&plan->rows[i]))
			return RUNNER_NOT_VERIFIED;
	}
	print_end();
	return traps_nr_warnings() ? RUNNER_WARNED : RUNNER_OK;
}

static const char usage[] =
	"usage: runner --variants A,B,... --forbidden FILE [--cpus N]\n"
	"              (--facts | --plan FILE --launch N --seed N)\n"
	"One launch of the zone-device experiment; `ream run` builds and drives it.\n"
	"  --variants   names of the linked kernels, in link order\n"
	"  --forbidden  addresses of the symbols that nobody defines\n"
	"  --cpus       use no more CPUs than this\n"
	"  --facts      print what the build says of struct page, as JSON, and stop\n"
	"  --plan       the rows to run, one per line (see plan.c)\n"
	"  --launch     its number, for the record\n"
	"  --seed       of the order within each round\n";

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "variants", required_argument, NULL, 'v' },
		{ "forbidden", required_argument, NULL, 'f' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "facts", no_argument, NULL, 'F' },
		{ "plan", required_argument, NULL, 'p' },
		{ "launch", required_argument, NULL, 'l' },
		{ "seed", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ .name = NULL },
	};
	const char *forbidden_path = NULL, *plan_path = NULL;
	const struct host_machine *machine;
	struct plan plan;
	unsigned int most_cpus = 0;
	bool facts = false;
	int option;

	/* A kernel may stop us at any time: each finished sample is out by then. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'v':
			name_variants(optarg);
			break;
		case 'f':
			forbidden_path = optarg;
			break;
		case 'c':
			most_cpus = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'F':
			facts = true;
			break;
		case 'p':
			plan_path = optarg;
			break;
		case 'l':
			launch.number = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 's':
			launch.seed = strtoull(optarg, NULL, 10);
			break;
		case 'h':
			fputs(usage, stdout);
			return RUNNER_OK;
		default:
			fputs(usage, stderr);
			return RUNNER_USAGE;
		}
	}
	if (!forbidden_path || !launch.nr_variants || (!facts && !plan_path)) {
		fputs(usage, stderr);
		return RUNNER_USAGE;
	}
	if (facts) {
		print_facts();
		return RUNNER_OK;
	}
	plan = plan_read(plan_path);
	machine = cpu_machine(most_cpus);
	launch.nr_cpus = machine->nr_cpus;
	traps_install(forbidden_path);
	map_small(USAGE_ADDRESS, USAGE_BYTES);
	map_small(PGMAP_ADDRESS, PGMAP_BYTES);
	kernel_boot_all(machine);
	pool_start(machine->nr_cpus);
	return run_plan(&plan);
}
