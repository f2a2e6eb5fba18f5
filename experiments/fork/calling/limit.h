/* SPDX-License-Identifier: GPL-2.0-only */
/* The physical limit of a fork as a call; limit.c. */
#ifndef REAM_CALLING_LIMIT_H
#define REAM_CALLING_LIMIT_H

#include "row.h"

/* Room for it, and none of it any more. */
void limit_open(struct row *row);
void limit_close(struct row *row);

/* With a parent, and a child where the operation has one before it. */
void limit_prepare(struct row *row);

/* What is timed. */
void limit_run(struct row *row);

#endif
