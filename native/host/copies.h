/* SPDX-License-Identifier: GPL-2.0-only */
/* The physical limit of moving pages: the same pages, copied and nothing else. */
#ifndef REAM_COPIES_H
#define REAM_COPIES_H

#include <stdbool.h>
#include <stddef.h>

struct copy_kind {
	const char *name;
	bool (*available)(void);
	/* Copies whole cache lines. */
	void (*copy)(unsigned char *to, const unsigned char *from, size_t bytes);
};

/* Ended by a NULL name; not all are available. */
extern const struct copy_kind copy_kinds[];

/**
 * struct copy_job - folios to copy
 * @copy: How.
 * @to: The targets' first frame.
 * @from: The sources'; what lies in a frame goes as far from @to.
 * @heads: Page numbers of where folios begin, in the order to copy them in.
 * @nr_folios: How many.
 * @folio_bytes: Of each.
 */
struct copy_job {
	void (*copy)(unsigned char *to, const unsigned char *from, size_t bytes);
	unsigned char *to;
	const unsigned char *from;
	const unsigned long *heads;
	size_t nr_folios;
	size_t folio_bytes;
};

/* Copy all of them, with @nr_threads CPUs; drained when it returns. */
void copy_folios(const struct copy_job *job, unsigned int nr_threads);

#endif
