// SPDX-License-Identifier: GPL-2.0-only
/*
 * The physical limit: an entry read and written, its copy written, and the
 * count of each page's mappings changed, one by one with plain instructions.
 * Nothing is looked for, allocated, locked or proven.
 */
#include <stdint.h>
#include "limit.h"

#define LINE_BYTES 64UL
#define PFN_MASK 0x000ffffffffff000UL	/* PTE_PFN_MASK */
#define RW 2UL
#define MAPCOUNT_OFFSET 48UL
#define AHEAD 16	/* entries; what a line from memory takes to arrive */

static inline unsigned int *mapcount_of(const struct limit_job *job, unsigned long entry)
{
	unsigned long pfn = (entry & PFN_MASK) >> 12;

	return (unsigned int *)(job->descriptors + pfn * LINE_BYTES + MAPCOUNT_OFFSET);
}

static inline void one(const struct limit_job *job, size_t i)
{
	unsigned long entry = job->entries[i];

	if (job->unmaps) {
		job->entries[i] = 0;
		--*mapcount_of(job, entry);
	} else {
		job->entries[i] = entry & ~RW;
		job->copies[i] = entry & ~RW;
		++*mapcount_of(job, entry);
	}
}

static void run_plain(const struct limit_job *job)
{
	for (size_t i = 0; i < job->nr; i++)
		one(job, i);
}

static void run_ahead(const struct limit_job *job)
{
	size_t i = 0;

	for (; i + AHEAD < job->nr; i++) {
		__builtin_prefetch(mapcount_of(job, job->entries[i + AHEAD]), 1);
		one(job, i);
	}
	for (; i < job->nr; i++)
		one(job, i);
}

const struct limit_kind limit_kinds[] = {
	{ "plain-rmw", run_plain },
	{ "plain-rmw-ahead", run_ahead },
	{ .name = NULL },
};
