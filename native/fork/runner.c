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
#include "fork.h"
#include "launch.h"
#include "limit.h"
#include "plan.h"

#define DESCRIPTOR_BYTES 64UL	/* sizeof(struct page); the oracle checks it */
#define MAPCOUNT_OFFSET 16UL	/* of _large_mapcount in a second descriptor; likewise */
#define PAGE_BYTES 4096UL
#define TABLE_RAM_BYTES (256UL << 20)	/* room for page tables of 64 GiB, twice */
#define WORLD_BYTES 4096UL
#define PTE_PRESENT 1UL
#define NR_COUNTS 7
#define MOST_SLOTS 64

/**
 * struct row - one operation on one mapping
 * @name: As the record spells it.
 * @rounds: How often everything is measured.
 * @limits: Whether every entry maps a page, so that a plain loop can do it.
 * @operation: enum fork_operation.
 * @pre_state: What the caches hold before each sample: enum pre_state.
 * @request: Both address spaces; the arrays are filled in later.
 * @write_protects: How far the parent's write_protect_seq has to go.
 * @mixed: Whether the VMA has frames without a mapcount, whose translations
 *	must be gone with their entries.
 * @nr_pages: Descriptors from FORK_DATA_PFN on.
 * @parent_rss: Counters to begin with.
 * @child_rss: Likewise.
 * @parent_rss_after: What they must be.
 * @child_rss_after: Likewise.
 * @counts: What struct fork_result must say, nr_freed to error.
 * @parent: Entries to begin with; @child may be absent.
 * @parent_after: What they must be; @child_after may be absent: empty.
 * @pages: Descriptors to begin with.
 * @pages_after: What they must be.
 * @child_single: Instead of @child_after, for a kernel that takes entries one
 *	by one where others take batches; may be absent: the same.
 * @counts_single: Likewise, instead of @counts.
 * @seconds: Which of them are the second of a large folio; may be absent.
 * @copies: Pairs of frames, source and copy, whose contents must be equal;
 *	may be absent.
 */
struct row {
	char name[64];
	unsigned int rounds;
	unsigned int limits;
	unsigned int operation;
	unsigned int pre_state;
	struct fork_request request;
	unsigned long write_protects;
	unsigned int mixed;
	unsigned long nr_pages;
	long parent_rss[FORK_NR_COUNTERS];
	long child_rss[FORK_NR_COUNTERS];
	long parent_rss_after[FORK_NR_COUNTERS];
	long child_rss_after[FORK_NR_COUNTERS];
	long counts[NR_COUNTS];
	long counts_single[NR_COUNTS];
	char parent[64];
	char child[64];
	char parent_after[64];
	char child_after[64];
	char child_single[64];
	char pages[64];
	char pages_after[64];
	char seconds[64];
	char copies[64];
};

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

/*
 * Where a batch ends shows in a few rows: in bits that its first entry gives
 * to all of the child's, and in folios that are half unmapped for a moment.
 * Both answers are right, but one kernel gives one answer in all rows: the
 * first row that tells them apart decides for the launch, by variant, and
 * for copying and unmapping apart.
 */
enum batching {
	BATCHING_UNKNOWN,
	BATCHING_YES,
	BATCHING_NO,
};

static enum batching batching[MOST_VARIANTS][2];

/* The row's files, mapped while it runs. */
static struct {
	struct image parent, child, parent_after, child_after, child_single;
	struct image pages, pages_after, seconds, copies;
	unsigned long *parent_is, *child_is;	/* as read back */
} now;

static struct {
	struct arena map;	/* descriptors, of tables first */
	unsigned char *ram;	/* contents of frames */
	size_t ram_bytes;
} memory;

static unsigned char *descriptor(unsigned long pfn)
{
	return memory.map.start + (pfn - FORK_TABLE_PFN) * DESCRIPTOR_BYTES;
}

static unsigned char *contents(unsigned long pfn)
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

static bool say(const struct row *row, const char *subject, const char *what, size_t at,
		unsigned long is, unsigned long expected)
{
	fprintf(stderr, "%s: %s: %s %zu is %#lx, the oracle says %#lx\n",
		row->name, subject, what, at, is, expected);
	return false;
}

static bool same_entries(const struct row *row, const char *subject, const char *what,
			 const unsigned long *is, const struct image *expected)
{
	const unsigned long *entry = (const unsigned long *)expected->start;

	for (unsigned long i = 0; i < row->request.nr_slots; i++) {
		unsigned long wanted = entry ? entry[i] : 0;

		if (is[i] != wanted)
			return say(row, subject, what, i, is[i], wanted);
	}
	return true;
}

/*
 * A kernel that has no such counter must have left the words alone; then
 * they are given the value they would have, and all is compared alike.
 */
static bool supply_large_mapcounts(const struct row *row, const char *subject)
{
	const unsigned int *second = (const unsigned int *)now.seconds.start;

	for (size_t i = 0; i < now.seconds.bytes / sizeof(*second); i++) {
		size_t at = second[i] * DESCRIPTOR_BYTES + MAPCOUNT_OFFSET;
		unsigned int *word = (unsigned int *)(descriptor(FORK_DATA_PFN) + at);
		unsigned int was = *(const unsigned int *)(now.pages.start + at);

		if (*word != was)
			return say(row, subject, "unused large mapcount", second[i], *word, was);
		*word = *(const unsigned int *)(now.pages_after.start + at);
	}
	return true;
}

static bool same_pages(const struct row *row, const char *subject)
{
	const unsigned char *is = descriptor(FORK_DATA_PFN);
	size_t at = arena_first_difference(is, now.pages.bytes, &now.pages_after, launch.nr_cpus);
	char who[256], of[64];

	if (at == ARENA_NO_DIFFERENCE)
		return true;
	snprintf(who, sizeof(who), "%s: %s", row->name, subject);
	snprintf(of, sizeof(of), " of descriptor %zu", at / DESCRIPTOR_BYTES);
	at -= at % DESCRIPTOR_BYTES;
	return area_is_as_expected(who, of, &(struct host_area){
		"page", is + at, now.pages_after.start + at, DESCRIPTOR_BYTES,
		__start_ream_kernels[0]->facts,
	});
}

static bool same_copies(const struct row *row, const char *subject)
{
	const unsigned long *pair = (const unsigned long *)now.copies.start;

	for (size_t i = 0; i < now.copies.bytes / sizeof(*pair); i += 2) {
		const unsigned char *is = contents(pair[i + 1]);
		const unsigned char *expected = contents(pair[i]);
		size_t at = 0;

		while (at < PAGE_BYTES && is[at] == expected[at])
			at++;
		if (at == PAGE_BYTES)
			continue;
		fprintf(stderr, "%s: %s: frame %lu is not the copy of frame %lu that it must be\n",
			row->name, subject, pair[i + 1], pair[i]);
		return say(row, subject, "its byte", at, is[at], expected[at]);
	}
	return true;
}

static bool same_counters(const struct row *row, const char *subject,
			  const struct fork_result *result)
{
	for (size_t i = 0; i < FORK_NR_COUNTERS; i++) {
		if (result->parent_rss[i] != row->parent_rss_after[i])
			return say(row, subject, "the parent's counter", i,
				   (unsigned long)result->parent_rss[i],
				   (unsigned long)row->parent_rss_after[i]);
		if (result->child_rss[i] != row->child_rss_after[i])
			return say(row, subject, "the child's counter", i,
				   (unsigned long)result->child_rss[i],
				   (unsigned long)row->child_rss_after[i]);
	}
	return !result->nr_stray ||
	       say(row, subject, "entries outside the VMA:", 0, result->nr_stray, 0);
}

static bool same_counts(const struct row *row, const char *subject,
			const struct fork_result *result, const long *expected)
{
	static const char *const names[NR_COUNTS] = {
		"folios freed:", "calls of deferred_split_folio():",
		"calls of swap_duplicate():", "calls of free_swap_and_cache():",
		"calls of folio_mark_dirty():", "calls of folio_mark_accessed():",
		"the result:",
	};
	const long counts[NR_COUNTS] = {
		(long)result->nr_freed, (long)result->nr_deferred,
		(long)result->nr_swap_duplicated, (long)result->nr_swap_freed,
		(long)result->nr_marked_dirty, (long)result->nr_accessed, result->error,
	};

	for (size_t i = 0; i < NR_COUNTS; i++)
		if (counts[i] != expected[i])
			return say(row, subject, names[i], 0, (unsigned long)counts[i],
				   (unsigned long)expected[i]);
	return true;
}

static const unsigned long *entries_unmapped(const struct row *row, const unsigned long **left)
{
	switch (row->operation) {
	case FORK_COPY:
		return NULL;
	case FORK_UNMAP_CHILD:
	case FORK_EXIT_CHILD:
		*left = now.child_is;
		return (const unsigned long *)now.child.start;
	default:
		*left = now.parent_is;
		return (const unsigned long *)now.parent.start;
	}
}

/* Every translation that is gone was flushed; where nobody counts, at once. */
static bool flushed(const struct row *row, const char *subject, const struct fork_result *result)
{
	const unsigned long *left, *was = entries_unmapped(row, &left);
	bool exits = row->operation == FORK_EXIT || row->operation == FORK_EXIT_CHILD;
	bool any = false;

	for (unsigned long i = 0; was && i < row->request.nr_slots; i++) {
		unsigned long address = row->request.address + i * PAGE_BYTES;

		if (!(was[i] & PTE_PRESENT) || left[i] == was[i])
			continue;
		any = true;
		if (address < result->flush_start)
			return say(row, subject, "the first address that is flushed, of entry", i,
				   result->flush_start, address);
		if (address >= result->flush_end)
			return say(row, subject, "the end of what is flushed, of entry", i,
				   result->flush_end, address + PAGE_BYTES);
	}
	return !any || !row->mixed || exits || result->nr_flushes_of_vma ||
	       say(row, subject, "flushes before the end of a VMA with VM_MIXEDMAP:", 0, 0, 1);
}

static bool same_mm(const struct row *row, const char *subject, const struct fork_result *result)
{
	bool swapped = row->operation == FORK_COPY && row->counts[2];

	if (result->write_protects != row->write_protects)
		return say(row, subject, "the steps of mm->write_protect_seq:", 0,
			   result->write_protects, row->write_protects);
	if (result->on_mmlist != swapped)
		return say(row, subject, "whether the child is on the mmlist of swapoff:", 0,
			   result->on_mmlist, swapped);
	if (result->nr_lost_tables)
		return say(row, subject, "mm->pgtables_bytes, but for the tables there:", 0,
			   (unsigned long)result->nr_lost_tables, 0);
	return !result->left_pending ||
	       say(row, subject, "left in mm->tlb_flush_pending, or tlb_flush_batched:", 0,
		   (unsigned long)result->left_pending, 0);
}

static bool is_single(const struct row *row, const struct fork_result *result)
{
	if (now.child_single.start)
		return !memcmp(result->child, now.child_single.start, now.child_single.bytes);
	return (long)result->nr_deferred == row->counts_single[1] &&
	       (long)result->nr_marked_dirty == row->counts_single[4] &&
	       (long)result->nr_accessed == row->counts_single[5];
}

/* Which of the two answers this kernel has to give. */
static enum batching expected_batching(const struct row *row, unsigned int variant,
				       const struct fork_result *result)
{
	enum batching *known = &batching[variant][row->operation != FORK_COPY];
	bool tells = now.child_single.start ||
		     memcmp(row->counts, row->counts_single, sizeof(row->counts));

	if (!tells)
		return BATCHING_YES;
	if (*known == BATCHING_UNKNOWN)
		*known = is_single(row, result) ? BATCHING_NO : BATCHING_YES;
	return *known;
}

static bool verify(const struct row *row, unsigned int variant)
{
	struct fork_result result = { .parent = now.parent_is, .child = now.child_is };
	const char *subject = launch.variant_names[variant];
	const struct fork_ops *ops = launch_ops(variant);
	const struct image *child = &now.child_after;
	const long *counts = row->counts;

	ops->read(&result);
	if (expected_batching(row, variant, &result) == BATCHING_NO) {
		child = now.child_single.start ? &now.child_single : child;
		counts = row->counts_single;
	}
	return same_entries(row, subject, "the parent's entry", now.parent_is,
			    &now.parent_after) &&
	       same_entries(row, subject, "the child's entry", now.child_is, child) &&
	       same_counters(row, subject, &result) &&
	       same_counts(row, subject, &result, counts) &&
	       same_mm(row, subject, &result) && flushed(row, subject, &result) &&
	       (ops->keeps_large_mapcount() || supply_large_mapcounts(row, subject)) &&
	       same_pages(row, subject) && same_copies(row, subject);
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
	verified = verify(row, variant);
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
