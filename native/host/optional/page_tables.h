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

/* Say where frames lie (paging_place.h), and take all page tables back. */
void host_place_frames(void);

/* Room for an address space, with the CPUs it runs on; once per launch. */
struct mm_struct *host_new_mm(void);

/* An empty one: locked for writing, its own pgd, on no CPU, its counters 0. */
void host_init_mm(struct mm_struct *mm);

/* Write @nr entries from @address on, into tables made as faults would. */
void host_fill_tables(struct mm_struct *mm, unsigned long address,
		      const unsigned long *entries, unsigned long nr);

/**
 * host_read_tables() - copy @nr entries from @start on
 * @mm: The address space.
 * @start: Address of the first entry.
 * @to: Room for them; zeroes where there is no table.
 * @nr: How many.
 *
 * Return: how many others of the same tables are not empty.
 */
unsigned long host_read_tables(struct mm_struct *mm, unsigned long start,
			       unsigned long *to, unsigned long nr);

/* What an mm says of its page tables, less those that lie below its pgd. */
long host_lost_tables(struct mm_struct *mm);

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
