/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel that has ream/page_tables.o. */
#ifndef REAM_PAGE_TABLES_H
#define REAM_PAGE_TABLES_H

#include <linux/mm_types.h>
#include <linux/pgtable.h>
#include <linux/rmap.h>
#include <linux/wordpart.h>

/* Take all page tables back; the next one is frame @pfn, then those behind it. */
void host_reset_tables(unsigned long pfn);

/* What a VMA of anonymous memory that was never moved counts its pages from. */
static inline void host_set_pgoff(struct vm_area_struct *vma)
{
	vma->vm_pgoff = vma->vm_start >> PAGE_SHIFT;
#ifdef HAVE_VM_ANON_PGOFF
	vma->__vm_anon_pgoff_hi = upper_32_bits(vma->vm_pgoff);
	vma->__vm_anon_pgoff_lo = lower_32_bits(vma->vm_pgoff);
#endif
}

/* As anon_vma_prepare() has it found by the pages of its VMA. */
static inline void host_link_anon_vma(struct anon_vma_chain *chain, struct anon_vma *root)
{
#ifdef HAVE_ANON_RMAP_TREE_INSERT
	anon_rmap_tree_insert(chain, root);
#else
	anon_vma_interval_tree_insert(chain, &root->rb_root);
#endif
}

/* The middle entry of @address, or NULL; for looking at what came of it. */
static inline pmd_t *host_look_up_pmd(struct mm_struct *mm, unsigned long address)
{
	pgd_t *pgd = pgd_offset(mm, address);
	p4d_t *p4d;
	pud_t *pud;

	if (pgd_none(*pgd))
		return NULL;
	p4d = p4d_offset(pgd, address);
	if (p4d_none(*p4d))
		return NULL;
	pud = pud_offset(p4d, address);
	return pud_none(*pud) ? NULL : pmd_offset(pud, address);
}

#endif
