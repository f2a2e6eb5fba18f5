// SPDX-License-Identifier: GPL-2.0-only
/*
 * Structures whose layout a series may change without changing a line of what
 * is hosted. Nothing of this is executed: lab/ream/kernel/layout.py reads
 * the debugging information that the compiler writes about them.
 */
#include <linux/mm.h>
#include <linux/mm_types.h>
#include <linux/mmzone.h>
#include <linux/rmap.h>
#include <linux/swap.h>
#include <asm/tlb.h>

/* A variable that refers to a type has the whole type described. */
struct page *reach_page;
struct folio *reach_folio;
struct ptdesc *reach_ptdesc;
struct vm_area_struct *reach_vma;
struct mm_struct *reach_mm;
struct anon_vma *reach_anon_vma;
struct zone *reach_zone;
struct pglist_data *reach_node;
struct mem_section *reach_section;
struct mmu_gather *reach_gather;
