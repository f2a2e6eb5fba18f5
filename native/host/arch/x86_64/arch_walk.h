/* SPDX-License-Identifier: GPL-2.0-only */
/* x86-64: the bits that a CPU sets in a page table entry when it uses it. */
#ifndef REAM_ARCH_WALK_H
#define REAM_ARCH_WALK_H

#include <stdbool.h>

#define WALK_PRESENT 0x001UL
#define WALK_WRITE 0x002UL
#define WALK_ACCESSED 0x020UL
#define WALK_DIRTY 0x040UL
#define WALK_SAVED_DIRTY (1UL << 58)	/* software's dirty bit of read-only entries */

/* All bits that record accesses and writes. */
#define WALK_HISTORY (WALK_ACCESSED | WALK_DIRTY | WALK_SAVED_DIRTY)

/* The entry after a load, or after a write if it permits one. Unchanged if not present. */
static inline unsigned long walk_use(unsigned long entry, bool write)
{
	if (!(entry & WALK_PRESENT))
		return entry;
	entry |= WALK_ACCESSED;
	return write && (entry & WALK_WRITE) ? entry | WALK_DIRTY : entry;
}

static inline bool walk_is_accessed(unsigned long entry)
{
	return entry & WALK_ACCESSED;
}

static inline bool walk_is_dirty(unsigned long entry)
{
	return entry & (WALK_DIRTY | WALK_SAVED_DIRTY);
}

/* Hint for loops that wait for another CPU. */
static inline void walk_relax(void)
{
	__builtin_ia32_pause();
}

#endif
