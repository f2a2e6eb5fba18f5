/* SPDX-License-Identifier: GPL-2.0-only */
/* Invariants of all memory that hold between any two steps. */
#ifndef REAM_CHECKS_H
#define REAM_CHECKS_H

#include <linux/types.h>

void check_everything(void);

/* left.c: called when all processes have ended. */
void check_what_is_left(void);
void check_open_files(void);	/* called when the program's files are closed */

/* Digest of the node and zone counters and of jiffies. Equal runs have equal digests. */
u64 digest(void);

#endif
