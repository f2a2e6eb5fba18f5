// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the compact experiment: a process that takes all memory of the node,
 * page by page as its faults would, and gives some of them back.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pgtable.h>
#include <linux/rmap.h>
#include <linux/rwsem.h>
#include <linux/string.h>
#include <linux/swap.h>
#include <asm/pgalloc.h>
#include "internal.h"
#include "kernel.h"
#include "page_tables.h"
#include "compact_kernel.h"

static struct {
	struct mm_struct *mm;
	struct vm_area_struct vma;
	struct anon_vma anon_vma;
	struct anon_vma_chain chain;
	unsigned long nr_mapped;
} process;

/* Two CPUs run it: TLB flushes are deferred, as they are where that pays. */
static void init_mm_struct(void)
{
	struct mm_struct *mm;
	size_t bytes = sizeof(*mm) + cpumask_size();
	int i;

	if (!process.mm)
		process.mm = host_alloc(bytes);
	mm = process.mm;
	memset(mm, 0, bytes);
	atomic_set(&mm->mm_users, 1);
	atomic_set(&mm->mm_count, 1);
	init_rwsem(&mm->mmap_lock);
	spin_lock_init(&mm->page_table_lock);
	INIT_LIST_HEAD(&mm->mmlist);
	for (i = 0; i < NR_MM_COUNTERS; i++)
		raw_spin_lock_init(&mm->rss_stat[i].lock);
	mm->pgd = page_address(alloc_pages_noprof(GFP_KERNEL | __GFP_ZERO, 0));
	for (i = 0; i < 2; i++)
		cpumask_set_cpu(i, mm_cpumask(mm));
}

/* As anon_vma_prepare() leaves them. */
static void init_vma(unsigned long nr_pages)
{
	struct vm_area_struct *vma = &process.vma;
	struct anon_vma *root = &process.anon_vma;

	memset(vma, 0, sizeof(*vma));
	memset(root, 0, sizeof(*root));
	memset(&process.chain, 0, sizeof(process.chain));
	vma->vm_mm = process.mm;
	vma->vm_start = COMPACT_VMA_ADDRESS;
	vma->vm_end = COMPACT_VMA_ADDRESS + nr_pages * PAGE_SIZE;
	host_set_pgoff(vma);
	vma->vm_page_prot = PAGE_COPY;
	vm_flags_init(vma, VM_READ | VM_WRITE | VM_MAYREAD | VM_MAYWRITE | VM_ACCOUNT);
	vma->anon_vma = root;
	init_rwsem(&root->rwsem);
	atomic_set(&root->refcount, 1);
	root->num_active_vmas = 1;
	root->root = root;
	root->parent = root;
	root->rb_root = RB_ROOT_CACHED;
	process.chain.vma = vma;
	process.chain.anon_vma = root;
	INIT_LIST_HEAD(&vma->anon_vma_chain);
	list_add(&process.chain.same_vma, &vma->anon_vma_chain);
	host_link_anon_vma(&process.chain, root);
}

static unsigned long address_of(unsigned long index)
{
	return COMPACT_VMA_ADDRESS + index * PAGE_SIZE;
}

static pte_t *pte_of(unsigned long index)
{
	unsigned long address = address_of(index);
	pmd_t *pmd = host_look_up_pmd(process.mm, address);

	return pte_offset_kernel(pmd, address);
}

/* The entry of a page that is about to be there. */
static pte_t *new_pte_of(unsigned long index)
{
	unsigned long address = address_of(index);
	p4d_t *p4d = p4d_alloc(process.mm, pgd_offset(process.mm, address), address);
	pud_t *pud = pud_alloc(process.mm, p4d, address);
	pmd_t *pmd = pmd_alloc(process.mm, pud, address);

	/* Our allocator of tables does not fail; a warning would fail the launch. */
	WARN_ON(pte_alloc(process.mm, pmd));
	return pte_offset_kernel(pmd, address);
}

/* As do_anonymous_page(), with a page that is not zeroed: its contents come later. */
static bool fault(unsigned long index)
{
	struct vm_area_struct *vma = &process.vma;
	unsigned long address = address_of(index);
	struct page *page = alloc_pages_node_noprof(0, COMPACT_GFP_FREE, 0);
	struct folio *folio;
	pte_t entry;

	if (!page)
		return false;
	folio = page_folio(page);
	__folio_mark_uptodate(folio);
	entry = pte_sw_mkyoung(mk_pte(page, vma->vm_page_prot));
	entry = pte_mkwrite(pte_mkdirty(entry), vma);
	add_mm_counter(process.mm, MM_ANONPAGES, 1);
	folio_add_new_anon_rmap(folio, vma, address, RMAP_EXCLUSIVE);
	folio_add_lru_vma(folio, vma);
	set_pte_at(process.mm, address, new_pte_of(index), entry);
	return true;
}

/* As zap_present_ptes(), and what the end of its gather does. */
static void give_back(unsigned long index)
{
	unsigned long address = address_of(index);
	pte_t entry = ptep_get_and_clear(process.mm, address, pte_of(index));
	struct page *page = pte_page(entry);
	struct folio *folio = page_folio(page);

	folio_remove_rmap_pte(folio, page, &process.vma);
	add_mm_counter(process.mm, MM_ANONPAGES, -1);
	folio_put(folio);
}

static bool is_one_of(unsigned long index, unsigned int every)
{
	return every && index % every == 0;
}

/* Somebody has use for some pages where they are. */
static void hold_some(const struct compact_request *request)
{
	unsigned long index;

	for (index = 0; index < process.nr_mapped; index++) {
		pte_t entry = ptep_get(pte_of(index));

		if (!pte_present(entry))
			continue;
		if (is_one_of(index, request->pinned_every))
			folio_get(pfn_folio(pte_pfn(entry)));
		if (is_one_of(index, request->mlocked_every))
			mlock_folio(pfn_folio(pte_pfn(entry)));
		if (is_one_of(index, request->locked_every))
			folio_trylock(pfn_folio(pte_pfn(entry)));
	}
	mlock_drain_local();
}

unsigned long compact_populate(const struct compact_request *request)
{
	unsigned long end, i;

	host_reset_tables(COMPACT_TABLE_PFN);
	init_mm_struct();
	init_vma(request->nr_pages);
	for (process.nr_mapped = 0; process.nr_mapped < request->nr_pages; process.nr_mapped++)
		if (!fault(process.nr_mapped))
			break;
	lru_add_drain();
	end = process.nr_mapped - process.nr_mapped % request->group;
	for (i = 0; i < request->nr_freed; i++)
		if (request->freed[i] < end)
			give_back(request->freed[i]);
	lru_add_drain();
	hold_some(request);
	return process.nr_mapped;
}

void compact_read_entries(unsigned long *ptes)
{
	unsigned long index;

	for (index = 0; index < process.nr_mapped; index++)
		ptes[index] = pte_val(ptep_get(pte_of(index)));
}

void compact_read_process(struct compact_result *result)
{
	unsigned int i;

	result->nr_mapped = process.nr_mapped;
	result->rss = process.mm->rss_stat[MM_ANONPAGES].count;
	/* Nothing is counted elsewhere, neither more nor less. */
	for (i = 0; i < NR_MM_COUNTERS; i++)
		if (i != MM_ANONPAGES && process.mm->rss_stat[i].count)
			result->rss = -1;
	result->anon_vma_refs = atomic_read(&process.anon_vma.refcount);
	result->anon_vma = (unsigned long)&process.anon_vma;
	result->pgoff = COMPACT_VMA_ADDRESS >> PAGE_SHIFT;
}
