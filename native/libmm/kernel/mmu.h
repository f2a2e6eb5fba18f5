/* SPDX-License-Identifier: GPL-2.0-only */
/* A CPU's translations, as access.c fills them and mmu.c forgets them. */
#ifndef REAM_MMU_H
#define REAM_MMU_H

#include <linux/mm_types.h>

/**
 * struct tlb_entry - one translation that a CPU remembers
 * @mm: Of which address space; NULL: none.
 * @page: Its number there.
 * @entry: What the tables held, as translate() has it.
 */
struct tlb_entry {
	struct mm_struct *mm;
	unsigned long page;
	unsigned long entry;
};

void remember_on_device(const struct tlb_entry *entry);
struct tlb_entry *tlb_slot(struct mm_struct *mm, unsigned long page, int cpu);

#endif
