// SPDX-License-Identifier: GPL-2.0-only
/*
 * The physical limit of a fork as a call: each VMA copied, each entry written,
 * each page's mapping and reference counted by one addition, or each page
 * copied. Nothing is looked for, allocated, locked or proven.
 */
#include <string.h>
#include "limit.h"

#define PTE_WRITE 2UL
#define PTE_PFN 0x000ffffffffff000UL
#define VM_WRITE 2UL
#define COUNTS_OFFSET 48UL	/* _mapcount, and _refcount in the upper half */
#define ONE_OF_EACH ((1UL << 32) + 1)

static unsigned long pfn_in(unsigned long entry)
{
	return (entry & PTE_PFN) >> 12;
}

static unsigned long *counts_of(unsigned long entry)
{
	return (unsigned long *)(descriptor_of(pfn_in(entry)) + COUNTS_OFFSET);
}

/* Pages that the child has; of faults, those that the parent may write to. */
static bool concerns(const struct row *row, const unsigned long *asked)
{
	return asked[ASKED_COPIED] &&
	       (row->operation != CALLING_FAULTS || (asked[ASKED_FLAGS] & VM_WRITE));
}

void limit_open(struct row *row)
{
	struct limit *limit = &row->limit;
	unsigned long nr = row->request.nr_anon + 1;

	limit->entries = host_alloc(nr * sizeof(*limit->entries));
	limit->copies = host_alloc(nr * sizeof(*limit->copies));
	limit->vmas = host_alloc(2 * row->request.nr_vmas * row->vma_bytes);
}

void limit_close(struct row *row)
{
	host_free(row->limit.entries);
	host_free(row->limit.copies);
	host_free(row->limit.vmas);
}

/* Of a page that faults copy, its new frame: in the caches where the page is. */
static void find_frames(struct row *row)
{
	unsigned long frame = 0;

	for (unsigned long i = 0; i < row->limit.nr; i++, frame++) {
		while (frame < row->frames.nr && row->frames.owner[frame] != OWNER_FREE)
			frame++;
		if (frame == row->frames.nr)
			die(RUNNER_USAGE, "%s: the node is too small", row->name);
		row->limit.copies[i] = (NODE_PFN + frame) << 12;
		set_caches(row, contents_of(NODE_PFN + frame), PAGE_BYTES);
	}
}

void limit_prepare(struct row *row)
{
	const struct calling_request *request = &row->request;
	const unsigned long *asked = request->vmas;
	struct limit *limit = &row->limit;
	unsigned long entry = 0;

	limit->nr = 0;
	for (unsigned long vma = 0; vma < request->nr_vmas; vma++, asked += ASKED_WORDS)
		for (unsigned long i = 0; i < asked[ASKED_NR_ANON]; i++, entry++)
			if (concerns(row, asked))
				limit->entries[limit->nr++] = row->before.entries[entry];
	if (row->operation == CALLING_FAULTS)
		find_frames(row);
	memset(limit->vmas, 0, 2 * request->nr_vmas * row->vma_bytes);
	set_caches(row, limit->entries, limit->nr * sizeof(*limit->entries));
	set_caches(row, limit->vmas, request->nr_vmas * row->vma_bytes);
}

static void copy_space(struct row *row)
{
	struct limit *limit = &row->limit;
	unsigned long nr_vmas = image_nr_words(&row->child) / VMA_WORDS;
	unsigned char *to = limit->vmas + row->request.nr_vmas * row->vma_bytes;

	for (unsigned long i = 0; i < nr_vmas; i++)
		memcpy(to + i * row->vma_bytes, limit->vmas + i * row->vma_bytes, row->vma_bytes);
	for (unsigned long i = 0; i < limit->nr; i++) {
		unsigned long entry = limit->entries[i] & ~PTE_WRITE;

		limit->entries[i] = entry;
		limit->copies[i] = entry;
		*counts_of(entry) += ONE_OF_EACH;
	}
}

static void copy_pages(struct row *row)
{
	struct limit *limit = &row->limit;

	for (unsigned long i = 0; i < limit->nr; i++) {
		unsigned long entry = limit->entries[i];

		memcpy(contents_of(pfn_in(limit->copies[i])), contents_of(pfn_in(entry)),
		       PAGE_BYTES);
		limit->entries[i] = limit->copies[i] | PTE_WRITE;
		*counts_of(entry) -= ONE_OF_EACH;
	}
}

static void drop_space(struct row *row)
{
	struct limit *limit = &row->limit;

	for (unsigned long i = 0; i < limit->nr; i++) {
		*counts_of(limit->entries[i]) -= ONE_OF_EACH;
		limit->entries[i] = 0;
	}
}

void limit_run(struct row *row)
{
	switch (row->operation) {
	case CALLING_FORK:
		return copy_space(row);
	case CALLING_FAULTS:
		return copy_pages(row);
	case CALLING_EXIT:
		return drop_space(row);
	}
}
