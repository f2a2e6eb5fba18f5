/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel that has ream/page_tables.o. */
#ifndef REAM_PAGE_TABLES_H
#define REAM_PAGE_TABLES_H

#include <linux/mm_types.h>
#include <linux/pgtable.h>
#include <linux/rmap.h>
#include <linux/wordpart.h>

/* Free all page tables. The next one will be frame @pfn, followed by the frames after it. */
void host_reset_tables(unsigned long pfn);

/* Set the addresses of frames (paging_place.h), and free all page tables. */
void host_place_frames(void);

/* Allocate an mm_struct with its cpumask. Call it once per launch. */
struct mm_struct *host_new_mm(void);

/* Make @mm empty: write-locked, with a PGD of its own, on no CPU, all counters 0. */
void host_init_mm(struct mm_struct *mm);

/* Write @nr entries from @address on, into tables allocated as by faults. */
void host_fill_tables(struct mm_struct *mm, unsigned long address,
		      const unsigned long *entries, unsigned long nr);

/**
 * host_read_tables() - copy @nr entries from @start on
 * @mm: The address space.
 * @start: Address of the first entry.
 * @to: Filled with the entries, and with zeroes where there is no table.
 * @nr: Number of entries.
 *
 * Return: the number of other entries in the same tables that are not empty.
 */
unsigned long host_read_tables(struct mm_struct *mm, unsigned long start,
			       unsigned long *to, unsigned long nr);

/* mm_pgtables_bytes() less the size of the tables that are below the PGD. */
long host_lost_tables(struct mm_struct *mm);

/* Set vm_pgoff of an anonymous VMA that was never moved. */
static inline void host_set_pgoff(struct vm_area_struct *vma)
{
	vma->vm_pgoff = vma->vm_start >> PAGE_SHIFT;
#ifdef HAVE_VM_ANON_PGOFF
	vma->__vm_anon_pgoff_hi = upper_32_bits(vma->vm_pgoff);
	vma->__vm_anon_pgoff_lo = lower_32_bits(vma->vm_pgoff);
#endif
}

/* Insert the VMA into the interval tree of its anon_vma, as anon_vma_prepare() does. */
static inline void host_link_anon_vma(struct anon_vma_chain *chain, struct anon_vma *root)
{
#ifdef HAVE_ANON_RMAP_TREE_INSERT
	anon_rmap_tree_insert(chain, root);
#else
	anon_vma_interval_tree_insert(chain, &root->rb_root);
#endif
}

/* The PMD of @address, or NULL. It allocates no tables. */
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
