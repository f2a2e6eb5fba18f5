/* SPDX-License-Identifier: GPL-2.0-only */
/* What must hold of all memory between two steps, whatever they were. */
#ifndef REAM_CHECKS_H
#define REAM_CHECKS_H

#include <linux/types.h>

void check_everything(void);

/* left.c: when all processes have ended. */
void check_what_is_left(void);
void check_open_files(void);	/* when those of the program are closed */

/* A number of all that users can see, and of all counters: equal in equal runs. */
u64 digest(void);

#endif
