/* SPDX-License-Identifier: GPL-2.0-only */
/* x86-64: what a CPU makes of a page table entry that it uses. */
#ifndef REAM_ARCH_WALK_H
#define REAM_ARCH_WALK_H

#include <stdbool.h>

#define WALK_PRESENT 0x001UL
#define WALK_WRITE 0x002UL
#define WALK_ACCESSED 0x020UL
#define WALK_DIRTY 0x040UL
#define WALK_SAVED_DIRTY (1UL << 58)	/* software's, where it may not be written */

/* All bits that a use may change, or tell of one. */
#define WALK_HISTORY (WALK_ACCESSED | WALK_DIRTY | WALK_SAVED_DIRTY)

/* The entry after a load, or a write where it is allowed; the same if it is of no page. */
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

/* Another CPU is waited for. */
static inline void walk_relax(void)
{
	__builtin_ia32_pause();
}

#endif
