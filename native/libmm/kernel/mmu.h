/* SPDX-License-Identifier: GPL-2.0-only */
/* The TLB of a CPU. access.c fills it and mmu.c flushes it. */
#ifndef REAM_MMU_H
#define REAM_MMU_H

#include <linux/mm_types.h>

/**
 * struct tlb_entry - one cached translation
 * @mm: Address space. NULL if the slot is empty.
 * @page: Virtual page number.
 * @entry: The page table entry, as translate() returned it.
 */
struct tlb_entry {
	struct mm_struct *mm;
	unsigned long page;
	unsigned long entry;
};

void remember_on_device(const struct tlb_entry *entry);
struct tlb_entry *tlb_slot(struct mm_struct *mm, unsigned long page, int cpu);

#endif
