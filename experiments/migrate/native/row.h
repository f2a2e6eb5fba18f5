/* SPDX-License-Identifier: GPL-2.0-only */
/* A row of the migrate experiment, as the runner's files have it. */
#ifndef REAM_MIGRATE_ROW_H
#define REAM_MIGRATE_ROW_H

#include "launch.h"
#include "migrate.h"

enum pre_state_of_migrate {
	PRE_WARM,	/* just written, as far as it fits into the caches */
	PRE_COLD,	/* no line of it in any cache */
	PRE_ISOLATED,	/* descriptors warm, all else cold: as scanners leave it */
};

/* One buffer of folios, moved: what its line says, and entries as read back. */
struct row {
#define ROW PLAN_MEMBER
#define REQUEST(...)
#include "row.def"
	struct migrate_request request;
	struct migrate_mapping is[MIGRATE_MOST_MAPPINGS];
	struct answers *expected;	/* expect.c's */
};

#endif
