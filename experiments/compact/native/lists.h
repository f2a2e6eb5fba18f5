/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose each frame of a node is, and the lists that say so. */
#ifndef REAM_COMPACT_LISTS_H
#define REAM_COMPACT_LISTS_H

#include "row.h"

enum owner { OWNER_NOBODY, OWNER_PAGE, OWNER_HUGE, OWNER_BALLAST, OWNER_FREE, OWNER_PCP };

extern const char *const owner_names[];

/* Walk all lists; frames that are free have their owner then. */
bool lists_check(struct row *row);

/* Say what is wrong, with row and variant before it; returns false. */
__attribute__((format(printf, 1, 2)))
bool verify_fails(const char *format, ...);

/* That @nr frames from one on, counted from the node's first, are of one owner and no other. */
bool verify_own(struct row *row, unsigned long frame, unsigned long nr, enum owner owner);

#endif
