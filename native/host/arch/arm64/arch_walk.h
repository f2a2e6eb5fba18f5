/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arm64: what a CPU with hardware updates changes in a page table entry that it uses.
 * Source: Arm ARM (DDI 0487), D8.5, hardware updates to translation tables.
 */
#ifndef REAM_ARCH_WALK_H
#define REAM_ARCH_WALK_H

#include <stdbool.h>

#define WALK_VALID (1UL << 0)
#define WALK_READ_ONLY (1UL << 7)	/* AP[2]: a write clears it if DBM is set */
#define WALK_ACCESSED (1UL << 10)	/* AF */
#define WALK_DBM (1UL << 51)
#define WALK_DIRTY (1UL << 55)		/* software's dirty bit */

/* All bits that record accesses and writes. */
#define WALK_HISTORY (WALK_ACCESSED | WALK_READ_ONLY | WALK_DIRTY)

/* The entry after a load, or after a write if it permits one. Unchanged if not valid. */
static inline unsigned long walk_use(unsigned long entry, bool write)
{
	if (!(entry & WALK_VALID))
		return entry;
	entry |= WALK_ACCESSED;
	return write && (entry & WALK_DBM) ? entry & ~WALK_READ_ONLY : entry;
}

static inline bool walk_is_accessed(unsigned long entry)
{
	return entry & WALK_ACCESSED;
}

static inline bool walk_is_dirty(unsigned long entry)
{
	return (entry & WALK_DIRTY) || ((entry & WALK_DBM) && !(entry & WALK_READ_ONLY));
}

/* Hint for loops that wait for another CPU. */
static inline void walk_relax(void)
{
	asm volatile("yield");
}

#endif
