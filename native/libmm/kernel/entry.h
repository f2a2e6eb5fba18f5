/* SPDX-License-Identifier: GPL-2.0-only */
/* What an entry of a page table says of one page. */
#ifndef REAM_ENTRY_H
#define REAM_ENTRY_H

#include <linux/mm_types.h>

enum entry_state { IS_NONE, IS_PRESENT, IS_SWAPPED, IS_MOVING, IS_MARKER, IS_BROKEN,
		  IS_PRIVATE, IS_OTHER };

/**
 * struct entry - what maps a page
 * @state: What it is; of a page that is migrated it is IS_MOVING, and of one in the memory of a
 *         device IS_PRIVATE.
 * @number: Of the frame, or of the slot in swap.
 * @is_huge: It maps more than this page.
 * @is_writable: The process may write without a fault.
 * @is_soft_dirty: It has its own bit for that; its VMA may have another one.
 * @is_protected: userfaultfd is told of accesses.
 * @is_by_frame: It is of a frame without a reference, which is a device's.
 * @is_guard: Accesses are errors.
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

/* NULL: it maps none, or pages of zeros or of a device, which are not counted. */
struct folio *folio_at(const struct entry *entry);

#endif
