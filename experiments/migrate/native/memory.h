/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory that folios, their descriptors and page tables lie in. */
#ifndef REAM_MIGRATE_MEMORY_H
#define REAM_MIGRATE_MEMORY_H

#include <stddef.h>

#define DESCRIPTOR_BYTES 64UL	/* sizeof(struct page); the oracle checks it */

/* Small things at fixed addresses; before any kernel is booted. */
void memory_map_small(void);

/* Descriptors and contents of @nr_pages sources, as many targets, and tables. */
void memory_map(size_t nr_pages, size_t nr_tables);

/* Where the descriptor or the contents of a frame are. */
unsigned char *memory_descriptor(unsigned long pfn);
unsigned char *memory_contents(unsigned long pfn);

/* Most page tables that address spaces with @nr_pmds middle entries have. */
size_t memory_nr_tables(size_t nr_pmds, unsigned int nr_mappings);

#endif
