/* SPDX-License-Identifier: GPL-2.0-only */
/* The physical limit of migration: the same pages are copied, and nothing else is done. */
#ifndef REAM_COPIES_H
#define REAM_COPIES_H

#include <stdbool.h>
#include <stddef.h>

struct copy_kind {
	const char *name;
	bool (*available)(void);
	/* Copy whole cache lines. */
	void (*copy)(unsigned char *to, const unsigned char *from, size_t bytes);
};

/* All kinds, ended by a NULL name. The CPU may lack some of them. */
extern const struct copy_kind copy_kinds[];

/**
 * struct copy_job - folios to copy
 * @copy: Function that copies.
 * @to: First frame of the targets.
 * @from: First frame of the sources. A folio has the same offset from both.
 * @heads: Page offset of each folio, in the order in which they are copied.
 * @nr_folios: Number of folios.
 * @folio_bytes: Size of a folio.
 */
struct copy_job {
	void (*copy)(unsigned char *to, const unsigned char *from, size_t bytes);
	unsigned char *to;
	const unsigned char *from;
	const unsigned long *heads;
	size_t nr_folios;
	size_t folio_bytes;
};

/* Copy all folios with @nr_threads CPUs. The stores are drained on return. */
void copy_folios(const struct copy_job *job, unsigned int nr_threads);

#endif
