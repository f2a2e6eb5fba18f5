/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The runner's side of experiments with page tables: it maps their frames, and
 * compares entries and struct pages with those of the oracle.
 */
#ifndef REAM_PAGING_H
#define REAM_PAGING_H

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "launch.h"
#include "paging_place.h"

#define DESCRIPTOR_BYTES 64UL	/* sizeof(struct page); the oracle checks it */
#define PAGE_BYTES 4096UL
#define PTES_PER_TABLE 512UL
#define PAGING_TABLE_RAM_BYTES (256UL << 20)	/* room for page tables of 64 GiB, twice */
#define PAGING_WORLD_BYTES 4096UL

/* Addresses of the struct page and of the contents of a frame. */
static inline unsigned char *descriptor(unsigned long pfn)
{
	return (unsigned char *)PAGING_MAP_ADDRESS + (pfn - PAGING_TABLE_PFN) * DESCRIPTOR_BYTES;
}

static inline unsigned char *contents(unsigned long pfn)
{
	return (unsigned char *)PAGING_RAM_ADDRESS + (pfn - PAGING_TABLE_PFN) * PAGE_BYTES;
}

/* Map what folio->mapping points to. For the experiment's prepare(). */
static inline void paging_prepare(void)
{
	launch_map_small(PAGING_ANON_VMA_ADDRESS, PAGING_WORLD_BYTES);
	launch_map_small(PAGING_MAPPING_ADDRESS, PAGING_WORLD_BYTES);
}

/**
 * paging_map() - map struct pages and contents of the frames of all rows
 * @nr_pages: Number of frames from PAGING_DATA_PFN on, in the largest row.
 *
 * Contents are only reserved, so frames that nothing accesses use no memory.
 * Ends the program if there is no memory.
 */
static inline void paging_map(size_t nr_pages)
{
	size_t data_offset = (PAGING_DATA_PFN - PAGING_TABLE_PFN) * DESCRIPTOR_BYTES;
	size_t ram_bytes = (PAGING_DATA_PFN - PAGING_TABLE_PFN + nr_pages) * PAGE_BYTES;
	void *ram = (void *)PAGING_RAM_ADDRESS;

	if (mmap(ram, ram_bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != ram)
		die(RUNNER_NO_RESOURCE, "cannot reserve %zu bytes", ram_bytes);
	if (madvise(ram, PAGING_TABLE_RAM_BYTES, MADV_HUGEPAGE))
		die(RUNNER_NO_RESOURCE, "transparent huge pages are not available");
	launch_map(PAGING_MAP_ADDRESS, data_offset + nr_pages * DESCRIPTOR_BYTES, 0);
}

/* The addresses of such an experiment, for the oracle. */
static const struct host_fact paging_addresses[] = {
	{ "first_pfn", PAGING_DATA_PFN },
	{ "map", PAGING_MAP_ADDRESS + (PAGING_DATA_PFN - PAGING_TABLE_PFN) * DESCRIPTOR_BYTES },
	{ "anon_vma", PAGING_ANON_VMA_ADDRESS },
	{ "mapping", PAGING_MAPPING_ADDRESS },
	{ }
};

/* Evict the struct pages and page tables of a row from all caches, or read them all. */
static inline void paging_set_caches(bool cold, size_t page_bytes, size_t nr_tables)
{
	if (cold) {
		cache_evict(descriptor(PAGING_DATA_PFN), page_bytes);
		cache_evict(descriptor(PAGING_TABLE_PFN), nr_tables * DESCRIPTOR_BYTES);
		cache_evict(contents(PAGING_TABLE_PFN), nr_tables * PAGE_BYTES);
		return;
	}
	cache_touch(descriptor(PAGING_DATA_PFN), page_bytes);
	cache_touch(contents(PAGING_TABLE_PFN), nr_tables * PAGE_BYTES);
}

/* Report a wrong value. Return: false. */
static inline bool paging_say(const char *row, const char *subject, const char *what, size_t at,
			      unsigned long is, unsigned long expected)
{
	fprintf(stderr, "%s: %s: %s %zu is %#lx, the oracle says %#lx\n",
		row, subject, what, at, is, expected);
	return false;
}

/* Whether a variant processes entries in batches, as far as it is known. */
enum batching {
	BATCHING_UNKNOWN,
	BATCHING_YES,
	BATCHING_NO,
};

/* Whether a kernel batches entries. The first row whose two results differ decides. */
static inline bool paging_takes_batches(enum batching *known, const unsigned long *entries,
					const struct image *single)
{
	if (!single->start)
		return true;
	if (*known == BATCHING_UNKNOWN)
		*known = memcmp(entries, single->start, single->bytes) ? BATCHING_YES : BATCHING_NO;
	return *known == BATCHING_YES;
}

/**
 * struct paging_answer - correct result of a row for one kind of kernel
 * @entries: The entries afterwards.
 * @counts: Other numbers, such as return values and flushes.
 */
struct paging_answer {
	const struct image *entries;
	const long *counts;
};

/**
 * paging_answer() - choose the answer that a kernel has to give to a row
 * @ruled_out: Bitmap of the answers that the kernel did not give to earlier rows.
 *	Those that it does not give to this row are added. Initially 0.
 * @answers: All correct answers. NULL entries stand for those of the first answer.
 * @nr: Number of answers.
 * @is: Entries that the kernel left.
 * @counts: Numbers that the kernel returned.
 * @nr_counts: Number of @counts.
 *
 * A kernel must give the same kind of answer to all rows. Return: that answer, or
 * one that it should have given if no answer is left.
 */
static inline const struct paging_answer *
paging_answer(unsigned int *ruled_out, struct paging_answer *answers, unsigned int nr,
	      const unsigned long *is, const long *counts, size_t nr_counts)
{
	const struct paging_answer *right = NULL, *first = NULL;
	unsigned int wrong = *ruled_out;

	for (unsigned int i = 0; i < nr; i++) {
		if (!answers[i].entries->start)
			answers[i].entries = answers[0].entries;
		if (wrong & 1U << i)
			continue;
		if (!first)
			first = &answers[i];
		if (memcmp(is, answers[i].entries->start, answers[i].entries->bytes) ||
		    memcmp(counts, answers[i].counts, nr_counts * sizeof(*counts)))
			wrong |= 1U << i;
		else if (!right)
			right = &answers[i];
	}
	if (!right)
		return first;
	*ruled_out = wrong;
	return right;
}

/* Compare @nr entries with an image. Without an image they must be empty. */
static inline bool paging_same_entries(const char *row, const char *subject, const char *what,
				       const unsigned long *is, const struct image *expected,
				       unsigned long nr)
{
	const unsigned long *entry = expected->words;

	for (unsigned long i = 0; i < nr; i++) {
		unsigned long wanted = entry ? entry[i] : 0;

		if (is[i] != wanted)
			return paging_say(row, subject, what, i, is[i], wanted);
	}
	return true;
}

/* Compare the struct pages from PAGING_DATA_PFN on with an image. */
static inline bool paging_same_pages(const char *row, const char *subject,
				     const struct image *expected)
{
	const unsigned char *is = descriptor(PAGING_DATA_PFN);
	size_t at = arena_first_difference(is, expected->bytes, expected, launch.nr_cpus);
	char who[256], of[64];

	if (at == ARENA_NO_DIFFERENCE)
		return true;
	snprintf(who, sizeof(who), "%s: %s", row, subject);
	snprintf(of, sizeof(of), " of descriptor %zu", at / DESCRIPTOR_BYTES);
	at -= at % DESCRIPTOR_BYTES;
	return area_is_as_expected(who, of, &(struct host_area){
		"page", is + at, expected->start + at, DESCRIPTOR_BYTES,
		__start_ream_kernels[launch.variant]->facts,
	});
}

#endif
