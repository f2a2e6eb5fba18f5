/* SPDX-License-Identifier: GPL-2.0-only */
/* What memory must hold after a migration, and whether it does. */
#ifndef REAM_MIGRATE_EXPECT_H
#define REAM_MIGRATE_EXPECT_H

#include <stdbool.h>
#include "row.h"

/* Read a row's answers. */
void expect_open(struct row *row);
void expect_close(struct row *row);

/**
 * expect_verify() - compare all of memory with the oracle's
 * @row: The row.
 * @variant: Index of the kernel.
 * @engine: The engine that copied.
 * @result: What the kernel reported.
 *
 * Return: whether nothing differs; a difference has been printed.
 */
bool expect_verify(const struct row *row, unsigned int variant, enum offload_engine engine,
		   const struct migrate_result *result);

/* Folios that a variant did not leave to be split, although the oracle does. */
unsigned long expect_nr_not_left(unsigned int variant);

/* Folios that an engine copied for the variant where nothing was timed. */
unsigned long expect_nr_offloaded(unsigned int variant);

/* Samples of it that left the right folios on the list, in another order. */
unsigned long expect_nr_reordered(unsigned int variant);

#endif
