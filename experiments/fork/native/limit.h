/* SPDX-License-Identifier: GPL-2.0-only */
/* The physical limit of copying or unmapping page tables. */
#ifndef REAM_FORK_LIMIT_H
#define REAM_FORK_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct limit_job - the memory that an operation cannot do without
 * @entries: The parent's page table entries.
 * @copies: The child's.
 * @nr: How many.
 * @descriptors: Where the descriptor of frame 0 would lie.
 * @unmaps: Entries are cleared, instead of write-protected and copied.
 */
struct limit_job {
	unsigned long *entries;
	unsigned long *copies;
	size_t nr;
	unsigned char *descriptors;
	bool unmaps;
};

struct limit_kind {
	const char *name;
	void (*run)(const struct limit_job *job);
};

/* Ended by a NULL name. */
extern const struct limit_kind limit_kinds[];

#endif
