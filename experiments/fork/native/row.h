/* SPDX-License-Identifier: GPL-2.0-only */
/* A row of the fork experiment, and its memory, as the runner's files have them. */
#ifndef REAM_FORK_ROW_H
#define REAM_FORK_ROW_H

#include "fork.h"
#include "paging.h"

#define NR_COUNTS 7

/* One operation on one mapping: what its line says, and what was read back. */
struct row {
#define ROW PLAN_MEMBER
#define REQUEST(...)
#include "row.def"
	struct fork_request request;
	unsigned long *parent_is;
	unsigned long *child_is;
};

/* Whether memory is what the oracle says; what is not has been said. */
bool expect_verify(const struct row *row, unsigned int variant);

#endif
