// SPDX-License-Identifier: GPL-2.0-only
/*
 * One launch of the fork experiment: rounds of every variant and of a plain
 * loop over the same memory. Before each sample memory is what the oracle
 * says it is; after it, all of it is compared with what the oracle expects.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "limit.h"
#include "plan.h"
#include "row.h"

#define TABLE_RAM_BYTES (256UL << 20)	/* room for page tables of 64 GiB, twice */
#define WORLD_BYTES 4096UL
#define MOST_SLOTS 64

enum pre_state_of_fork {
	PRE_WARM,	/* just written, as far as it fits into the caches */
	PRE_COLD,	/* no line of it in any cache */
};

static const char *const pre_states[] = {
	[PRE_WARM] = "warm", [PRE_COLD] = "cold", NULL
};

static const char *const operations[] = {
	[FORK_COPY] = "copy",
	[FORK_UNMAP] = "unmap",
	[FORK_UNMAP_CHILD] = "unmap-child",
	[FORK_EXIT] = "exit",
	[FORK_EXIT_CHILD] = "exit-child",
	[FORK_DISCARD] = "discard",
	[FORK_TRUNCATE] = "truncate",
	[FORK_NR_OPERATIONS] = NULL
};

static const struct plan_field fields[] = {
	PLAN_FIELD("name", PLAN_TEXT, struct row, name),
	PLAN_FIELD("rounds", PLAN_UINT, struct row, rounds),
	PLAN_FIELD("limits", PLAN_UINT, struct row, limits),
	PLAN_FIELD_CHOICE("operation", operations, struct row, operation),
	PLAN_FIELD_CHOICE("pre_state", pre_states, struct row, pre_state),
	PLAN_FIELD("address", PLAN_ULONG, struct row, request.address),
	PLAN_FIELD("nr_slots", PLAN_ULONG, struct row, request.nr_slots),
	PLAN_FIELD("vm_flags", PLAN_ULONG, struct row, request.vm_flags),
	PLAN_FIELD("page_prot", PLAN_ULONG, struct row, request.page_prot),
	PLAN_FIELD("has_anon_vma", PLAN_UINT, struct row, request.has_anon_vma),
	PLAN_FIELD("child_uffd_wp", PLAN_UINT, struct row, request.child_uffd_wp),
	PLAN_FIELD("anonymous", PLAN_UINT, struct row, request.anonymous),
	PLAN_FIELD("has_pinned", PLAN_UINT, struct row, request.has_pinned),
	PLAN_FIELD("mm_users", PLAN_UINT, struct row, request.mm_users),
	PLAN_FIELD("busy", PLAN_UINT, struct row, request.busy),
	PLAN_FIELD("overlapped", PLAN_UINT, struct row, request.overlapped),
	PLAN_FIELD("write_protects", PLAN_ULONG, struct row, write_protects),
	PLAN_FIELD("mixed", PLAN_UINT, struct row, mixed),
	PLAN_FIELD("spare_pfn", PLAN_ULONG, struct row, request.spare_pfn),
	PLAN_FIELD("nr_spare", PLAN_ULONG, struct row, request.nr_spare),
	PLAN_FIELD("nr_pages", PLAN_ULONG, struct row, nr_pages),
	PLAN_FIELD("parent_rss", PLAN_LONGS, struct row, parent_rss),
	PLAN_FIELD("child_rss", PLAN_LONGS, struct row, child_rss),
	PLAN_FIELD("parent_rss_after", PLAN_LONGS, struct row, parent_rss_after),
	PLAN_FIELD("child_rss_after", PLAN_LONGS, struct row, child_rss_after),
	PLAN_FIELD("counts", PLAN_LONGS, struct row, counts),
	PLAN_FIELD("counts_single", PLAN_LONGS, struct row, counts_single),
	PLAN_FIELD("parent", PLAN_TEXT, struct row, parent),
	PLAN_FIELD("child", PLAN_TEXT, struct row, child),
	PLAN_FIELD("parent_after", PLAN_TEXT, struct row, parent_after),
	PLAN_FIELD("child_after", PLAN_TEXT, struct row, child_after),
	PLAN_FIELD("child_single", PLAN_TEXT, struct row, child_single),
	PLAN_FIELD("pages", PLAN_TEXT, struct row, pages),
	PLAN_FIELD("pages_after", PLAN_TEXT, struct row, pages_after),
	PLAN_FIELD("seconds", PLAN_TEXT, struct row, seconds),
	PLAN_FIELD("copies", PLAN_TEXT, struct row, copies),
	{ .key = NULL },
};

struct files now;

static struct {
	struct arena map;	/* descriptors, of tables first */
	unsigned char *ram;	/* contents of frames */
	size_t ram_bytes;
} memory;

unsigned char *descriptor(unsigned long pfn)
{
	return memory.map.start + (pfn - FORK_TABLE_PFN) * DESCRIPTOR_BYTES;
}

unsigned char *contents(unsigned long pfn)
{
	return memory.ram + (pfn - FORK_TABLE_PFN) * PAGE_BYTES;
}

static void open_row(struct row *row)
{
	size_t bytes = row->request.nr_slots * sizeof(unsigned long);

	now.parent = image_map_if_any(row->parent);
	now.child = image_map_if_any(row->child);
	now.parent_after = image_map_if_any(row->parent_after);
	now.child_after = image_map_if_any(row->child_after);
	now.child_single = image_map_if_any(row->child_single);
	now.pages = image_map_if_any(row->pages);
	now.pages_after = image_map_if_any(row->pages_after);
	now.seconds = image_map_if_any(row->seconds);
	now.copies = image_map_if_any(row->copies);
	if (now.parent.bytes != bytes || now.parent_after.bytes != bytes ||
	    now.pages.bytes != row->nr_pages * DESCRIPTOR_BYTES ||
	    now.pages_after.bytes != now.pages.bytes)
		die(RUNNER_USAGE, "%s: files of wrong sizes", row->name);
	now.parent_is = malloc(bytes);
	now.child_is = malloc(bytes);
	if (!now.parent_is || !now.child_is)
		die(RUNNER_NO_RESOURCE, "no memory for the entries read back");
	row->request.parent = (const unsigned long *)now.parent.start;
	row->request.child = (const unsigned long *)now.child.start;
	row->request.parent_rss = row->parent_rss;
	row->request.child_rss = row->child_rss;
}

static void close_row(void)
{
	free(now.parent_is);
	free(now.child_is);
	image_unmap(&now.parent);
	image_unmap(&now.child);
	image_unmap(&now.parent_after);
	image_unmap(&now.child_after);
	image_unmap(&now.child_single);
	image_unmap(&now.pages);
	image_unmap(&now.pages_after);
	image_unmap(&now.seconds);
	image_unmap(&now.copies);
}

/* Different contents in every frame that is copied from, and none where to. */
static void fill_contents(void)
{
	const unsigned long *pair = (const unsigned long *)now.copies.start;

	for (size_t i = 0; i < now.copies.bytes / sizeof(*pair); i += 2) {
		memset(contents(pair[i]), (int)(pair[i] * 31 + i), PAGE_BYTES);
		memset(contents(pair[i + 1]), 0, PAGE_BYTES);
	}
}

static void set_before(const struct row *row, const struct fork_ops *ops)
{
	memcpy(descriptor(FORK_DATA_PFN), now.pages.start, now.pages.bytes);
	fill_contents();
	ops->prepare(&row->request);
}

/* All that the operation will read or write, but for our own copies. */
static void set_pre_state(const struct row *row)
{
	size_t nr_tables = (row->request.nr_slots / 512 + 16) * 2;
	size_t table_bytes = nr_tables * PAGE_BYTES;

	if (row->pre_state == PRE_COLD) {
		cache_evict(descriptor(FORK_DATA_PFN), now.pages.bytes);
		cache_evict(descriptor(FORK_TABLE_PFN), nr_tables * DESCRIPTOR_BYTES);
		cache_evict(memory.ram, table_bytes);
		return;
	}
	cache_touch(descriptor(FORK_DATA_PFN), now.pages.bytes);
	cache_touch(memory.ram, table_bytes);
}

static void print_sample(const struct row *row, unsigned int round, const char *subject,
			 bool is_limit, struct span span, bool verified)
{
	const struct sample sample = {
		.row = row->name,
		.round = round,
		.is_limit = is_limit,
		.subject = subject,
		.nr_threads = 1,
		.span = span,
		.nr_bytes = row->request.nr_slots * DESCRIPTOR_BYTES,
		.verified = verified,
	};

	launch_print_sample(&sample);
}

/* A sample that is not to count is printed only if it is wrong. */
static bool sample_variant(const struct row *row, unsigned int round, unsigned int variant,
			   bool counts)
{
	const struct fork_ops *ops = launch_ops(variant);
	struct span span;
	bool verified;

	watch_begin(row->name, launch.variant_names[variant]);
	set_before(row, ops);
	set_pre_state(row);
	span = span_begin();
	ops->run(row->operation);
	span = launch_stop_clock(variant, span);
	verified = expect_verify(row, variant);
	if (counts || !verified)
		print_sample(row, round, launch.variant_names[variant], false, span, verified);
	return verified;
}

/* The first variant's page tables will do: they are the same for all. */
static void sample_limit(const struct row *row, unsigned int round, const struct limit_kind *kind)
{
	struct limit_job job = {
		.entries = now.parent_is,
		.copies = now.child_is,
		.nr = row->request.nr_slots,
		.descriptors = memory.map.start - FORK_TABLE_PFN * DESCRIPTOR_BYTES,
		.unmaps = row->operation != FORK_COPY,
	};
	struct span span;

	watch_begin(row->name, kind->name);
	memcpy(now.parent_is, now.parent.start, now.parent.bytes);
	set_before(row, launch_ops(0));
	set_pre_state(row);
	if (row->pre_state == PRE_COLD) {
		cache_evict(job.entries, job.nr * sizeof(*job.entries));
		cache_evict(job.copies, job.nr * sizeof(*job.copies));
	}
	span = span_begin();
	kind->run(&job);
	span = span_end(span);
	print_sample(row, round, kind->name, true, span, true);
}

/*
 * The first call of a kernel in a launch, and in a row, meets page tables, code
 * and buffers that no call has been at, and takes twice as long.
 */
static bool warm_up(const struct row *row, unsigned int round)
{
	bool verified = true;

	for (unsigned int i = 0; verified && i < launch.nr_variants; i++)
		verified = sample_variant(row, round, i, false);
	return verified;
}

static bool run_row(struct row *row)
{
	unsigned int order[MOST_SLOTS];
	unsigned int nr = launch.nr_variants;
	bool verified = true, warm = false;

	open_row(row);
	for (const struct limit_kind *kind = limit_kinds; row->limits && kind->name; kind++)
		nr++;
	for (unsigned int round = 0; verified && round < row->rounds; round++) {
		random_order(order, nr, &launch.seed);
		if (launch_has_done(row->name, round))
			continue;
		if (!warm)
			verified = warm_up(row, round);
		warm = true;
		for (unsigned int i = 0; verified && i < nr; i++) {
			if (order[i] < launch.nr_variants)
				verified = sample_variant(row, round, order[i], true);
			else
				sample_limit(row, round,
					     &limit_kinds[order[i] - launch.nr_variants]);
		}
		if (verified)
			launch_end_round(row->name, round);
	}
	close_row();
	return verified;
}

static void prepare(void)
{
	launch_map_small(FORK_ANON_VMA_ADDRESS, WORLD_BYTES);
	launch_map_small(FORK_MAPPING_ADDRESS, WORLD_BYTES);
}

static void map_memory(const struct row *rows, size_t nr_rows)
{
	unsigned long most_pages = 0;
	size_t data_offset = (FORK_DATA_PFN - FORK_TABLE_PFN) * DESCRIPTOR_BYTES;

	for (size_t i = 0; i < nr_rows; i++)
		if (rows[i].nr_pages > most_pages)
			most_pages = rows[i].nr_pages;
	/* Reserved, not touched: frames that nothing looks into cost nothing. */
	memory.ram_bytes = (FORK_DATA_PFN - FORK_TABLE_PFN + most_pages) * PAGE_BYTES;
	memory.ram = mmap((void *)FORK_RAM_ADDRESS, memory.ram_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
			  -1, 0);
	if (memory.ram != (void *)FORK_RAM_ADDRESS)
		die(RUNNER_NO_RESOURCE, "cannot reserve %zu bytes", memory.ram_bytes);
	if (madvise(memory.ram, TABLE_RAM_BYTES, MADV_HUGEPAGE))
		die(RUNNER_NO_RESOURCE, "transparent huge pages are not available");
	memory.map = arena_map(FORK_MAP_ADDRESS, data_offset + most_pages * DESCRIPTOR_BYTES,
			       launch.nr_cpus);
	launch.huge_ratio = (double)arena_huge_bytes(&memory.map) / (double)memory.map.bytes;
}

static bool run_plan(const char *path)
{
	size_t nr_rows;
	struct row *rows = plan_read(path, fields, sizeof(*rows), &nr_rows);

	map_memory(rows, nr_rows);
	for (size_t i = 0; i < nr_rows; i++)
		if (!run_row(&rows[i]))
			return false;
	return true;
}

static const struct host_fact addresses[] = {
	{ "first_pfn", FORK_DATA_PFN },
	{ "map", FORK_MAP_ADDRESS + (FORK_DATA_PFN - FORK_TABLE_PFN) * DESCRIPTOR_BYTES },
	{ "anon_vma", FORK_ANON_VMA_ADDRESS },
	{ "mapping", FORK_MAPPING_ADDRESS },
	{ }
};

int main(int argc, char **argv)
{
	static const struct experiment fork_experiment = {
		.name = "fork",
		.addresses = addresses,
		.prepare = prepare,
		.run = run_plan,
	};

	return launch_main(argc, argv, &fork_experiment);
}
