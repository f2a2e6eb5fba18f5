/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what the migrate experiment's substitutes offer glue.c. */
#ifndef REAM_MIGRATE_KERNEL_H
#define REAM_MIGRATE_KERNEL_H

#include <linux/types.h>
#include "migrate.h"

/* Forget all allocations and counts, and go by @request from now on. */
void migrate_reset(const struct migrate_request *request);
void migrate_read_counts(struct migrate_result *result);

/* Have those folios copied by whom @request says, as far as this kernel can. */
void migrate_choose(const struct migrate_request *request);

/* Who that is, and how many folios he has copied since. */
enum migrate_engine migrate_engine_in_use(void);
unsigned long migrate_nr_offloaded(void);

/* Static in the modules; see the file `objects`. */
int dcbm_init(void);
int swdma_init(void);
int mtcopy_init(void);

/* Whether @number is one of @nr ascending ones. */
bool migrate_among(unsigned long number, const unsigned long *numbers, unsigned long nr);

#endif
