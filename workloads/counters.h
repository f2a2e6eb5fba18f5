/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel, its copy offload and our DMA engine count of migration and
 * compaction.
 */
#ifndef REAM_COUNTERS_H
#define REAM_COUNTERS_H

#include <stdbool.h>

#define NR_COUNTERS 30

struct counters {
	unsigned long value[NR_COUNTERS];
	bool known[NR_COUNTERS];	/* whether this kernel has it */
};

/* Read all of them; exits without /proc/vmstat's pgmigrate_success. */
void counters_read(struct counters *counters);

/* Print as a JSON object by how much each has grown. */
void counters_print(const struct counters *before,
		    const struct counters *after);

/* Pages that were migrated meanwhile, by anybody, in the whole system. */
unsigned long counters_migrated(const struct counters *before,
				const struct counters *after);

/* By how much the counter of that name has grown; 0 if there is none. */
unsigned long counters_grown(const char *name, const struct counters *before,
			     const struct counters *after);

#endif
