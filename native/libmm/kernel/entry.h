/* SPDX-License-Identifier: GPL-2.0-only */
/* A page table entry, decoded for one page. */
#ifndef REAM_ENTRY_H
#define REAM_ENTRY_H

#include <linux/mm_types.h>

enum entry_state { IS_NONE, IS_PRESENT, IS_SWAPPED, IS_MOVING, IS_MARKER, IS_BROKEN,
		  IS_PRIVATE, IS_OTHER };

/**
 * struct entry - the page table entry of one page
 * @state: Kind of the entry. IS_MOVING is a migration entry, IS_PRIVATE one for a device
 *         private page.
 * @number: PFN, or offset of the swap slot.
 * @is_huge: The entry maps more than this page.
 * @is_writable: The process may write without a fault.
 * @is_soft_dirty: The soft-dirty bit of the entry. The VMA has a flag of its own.
 * @is_protected: userfaultfd is notified of accesses.
 * @is_by_frame: The entry maps a frame of a device and holds no reference.
 * @is_guard: It is a guard marker, so accesses raise SIGSEGV.
 */
struct entry {
	enum entry_state state;
	unsigned long number;
	bool is_huge;
	bool is_writable;
	bool is_soft_dirty;
	bool is_protected;
	bool is_by_frame;
	bool is_guard;
};

struct entry entry_at(struct mm_struct *mm, unsigned long address);

/* The folio that an entry maps. NULL if none, or a zero page or a page of a device. */
struct folio *folio_at(const struct entry *entry);

#endif
