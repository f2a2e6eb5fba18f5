// SPDX-License-Identifier: GPL-2.0-only
/*
 * For a fork as a call: what an address space is, as its tree of VMAs, its
 * page tables and what finds it from a page or a file say.
 */
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmap_lock.h>
#include <linux/pgtable.h>
#include <linux/rbtree.h>
#include <linux/rmap.h>
#include <linux/string.h>
#include "internal.h"
#include "kernel.h"
#include "calling_kernel.h"
#include "page_tables.h"

static pte_t entry_of(struct mm_struct *mm, unsigned long address)
{
	pmd_t *pmd = host_look_up_pmd(mm, address);

	return pmd && !pmd_none(*pmd) ? ptep_get(pte_offset_kernel(pmd, address)) : __pte(0);
}

static unsigned long nr_in(const pmd_t *pmd)
{
	const pte_t *table = (const pte_t *)pmd_page_vaddr(*pmd);
	unsigned long nr = 0;
	int i;

	for (i = 0; i < PTRS_PER_PTE; i++)
		nr += !!pte_val(table[i]);
	return nr;
}

/* Of the user's half. */
static unsigned long nr_entries(struct mm_struct *mm)
{
	unsigned long nr = 0;
	int i, j, k;

	for (i = 0; i <= pgd_index(TASK_SIZE_MAX - 1); i++) {
		pud_t *pud;

		if (pgd_none(mm->pgd[i]) || p4d_none(*p4d_offset(&mm->pgd[i], 0)))
			continue;
		pud = p4d_pgtable(*p4d_offset(&mm->pgd[i], 0));
		for (j = 0; j < PTRS_PER_PUD; j++) {
			pmd_t *pmd;

			if (pud_none(pud[j]))
				continue;
			pmd = pud_pgtable(pud[j]);
			for (k = 0; k < PTRS_PER_PMD; k++)
				nr += pmd_none(pmd[k]) ? 0 : nr_in(&pmd[k]);
		}
	}
	return nr;
}

static void read_entries(struct mm_struct *mm, unsigned long *entries)
{
	unsigned long i, at;

	for (i = 0; i < calling_world.request.nr_vmas; i++) {
		const unsigned long *asked = calling_world.request.vmas + i * ASKED_WORDS;
		unsigned long start = asked[ASKED_START];

		for (at = 0; at < asked[ASKED_NR_ANON]; at++)
			*entries++ = pte_val(entry_of(mm, start + at * PAGE_SIZE));
	}
}

static unsigned long nr_chains(struct vm_area_struct *vma)
{
	struct list_head *at;
	unsigned long nr = 0;

	list_for_each(at, &vma->anon_vma_chain)
		nr++;
	return nr;
}

/* Another VMA may have the same one, if both are of one process and look alike. */
static bool is_own(struct vm_area_struct *vma)
{
	struct anon_vma_chain *chain;
	bool is_linked = false;

	if (!vma->anon_vma)
		return false;
	list_for_each_entry(chain, &vma->anon_vma_chain, same_vma)
		if (chain->anon_vma == vma->anon_vma)
			is_linked = true;
	/* A child's hangs below its parent's. */
	return is_linked && (vma->vm_mm == calling_world.parent) ==
			    (vma->anon_vma->root == vma->anon_vma);
}

static bool count_vma(struct folio *folio, struct vm_area_struct *vma, unsigned long address,
		      void *arg)
{
	unsigned long *nr = arg;

	++*nr;
	return true;
}

/* In how many VMAs reclaim would look for the first page of this one. */
static unsigned long nr_reached(struct vm_area_struct *vma)
{
	unsigned long nr = 0;
	struct rmap_walk_control walk = { .rmap_one = count_vma, .arg = &nr };
	pte_t entry = entry_of(vma->vm_mm, vma->vm_start);
	struct folio *folio;

	if (!pte_present(entry) || !vma->anon_vma)
		return 0;
	folio = page_folio(pte_page(entry));
	folio_lock(folio);
	rmap_walk(folio, &walk);
	folio_unlock(folio);
	return nr;
}

static unsigned long number_of(const struct file *file)
{
	return file ? file - calling_world.files + 1 : 0;
}

static void read_vma(struct vm_area_struct *vma, unsigned long *words)
{
	words[VMA_START] = vma->vm_start;
	words[VMA_END] = vma->vm_end;
	words[VMA_FLAGS] = vma->vm_flags;
	words[VMA_FILE] = number_of(vma->vm_file);
	words[VMA_PGOFF] = vma->vm_pgoff;
	words[VMA_NR_CHAINS] = nr_chains(vma);
	words[VMA_OWN_ANON] = is_own(vma);
	words[VMA_REACHED] = nr_reached(vma);
}

static void read_counters(struct mm_struct *mm, long *counters)
{
	int i;

	counters[SPACE_MAP_COUNT] = mm->map_count;
	counters[SPACE_TOTAL_VM] = mm->total_vm;
	counters[SPACE_DATA_VM] = mm->data_vm;
	counters[SPACE_EXEC_VM] = mm->exec_vm;
	counters[SPACE_STACK_VM] = mm->stack_vm;
	counters[SPACE_LOCKED_VM] = mm->locked_vm;
	for (i = 0; i < NR_MM_COUNTERS; i++)
		counters[SPACE_RSS + i] = percpu_counter_sum(&mm->rss_stat[i]);
	counters[SPACE_USERS] = atomic_read(&mm->mm_users);
}

void calling_read_space(struct calling_space *space, int child)
{
	struct mm_struct *mm = child ? calling_world.task.mm : calling_world.parent;
	struct vm_area_struct *vma;

	space->nr_vmas = 0;
	if (!mm)
		return;
	{
		VMA_ITERATOR(vmi, mm, 0);

		mmap_read_lock(mm);
		for_each_vma(vmi, vma) {
			if (space->nr_vmas < space->most)
				read_vma(vma, space->vmas + space->nr_vmas * VMA_WORDS);
			space->nr_vmas++;
		}
		mmap_read_unlock(mm);
	}
	read_entries(mm, space->entries);
	read_counters(mm, space->counters);
	space->nr_entries = nr_entries(mm);
}

void calling_read_files(struct calling_result *result)
{
	unsigned long i;

	result->file_vmas = 0;
	result->file_refs = 0;
	for (i = 0; i < calling_world.nr_files; i++) {
		struct rb_node *node = rb_first_cached(&calling_world.mappings[i].i_mmap);

		for (; node; node = rb_next(node))
			result->file_vmas++;
		/* One reference is that of glue.c, which keeps it open. */
		result->file_refs += file_count(&calling_world.files[i]) - 1;
	}
}
