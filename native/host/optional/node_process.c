// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that uses pages of the node of ream/node.o. They are mapped as faults
 * would map them.
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
#include "node.h"
#include "page_tables.h"

struct node_process host_process;

/* Two CPUs use the mm, so that reclaim and migration batch TLB flushes. */
static void init_mm_struct(void)
{
	struct mm_struct *mm;
	size_t bytes = sizeof(*mm) + cpumask_size();
	int i;

	if (!host_process.mm)
		host_process.mm = host_alloc(bytes);
	mm = host_process.mm;
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
#ifdef CONFIG_MM_ID
	mm->mm_id = MM_ID_MIN;
#endif
}

/* Set up the VMA and its anon_vma as anon_vma_prepare() leaves them. */
static void init_vma(unsigned long nr_pages)
{
	struct vm_area_struct *vma = &host_process.vma;
	struct anon_vma *root = &host_process.anon_vma;

	memset(vma, 0, sizeof(*vma));
	memset(root, 0, sizeof(*root));
	memset(&host_process.chain, 0, sizeof(host_process.chain));
	vma->vm_mm = host_process.mm;
	vma->vm_start = NODE_VMA_ADDRESS;
	vma->vm_end = NODE_VMA_ADDRESS + nr_pages * PAGE_SIZE;
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
	host_process.chain.vma = vma;
	host_process.chain.anon_vma = root;
	INIT_LIST_HEAD(&vma->anon_vma_chain);
	list_add(&host_process.chain.same_vma, &vma->anon_vma_chain);
	host_link_anon_vma(&host_process.chain, root);
}

static unsigned long address_of(unsigned long index)
{
	return NODE_VMA_ADDRESS + index * PAGE_SIZE;
}

pte_t *host_pte_of(unsigned long index)
{
	unsigned long address = address_of(index);
	pmd_t *pmd = host_look_up_pmd(host_process.mm, address);

	return pte_offset_kernel(pmd, address);
}

/* Address of the PTE of a page, whose tables are allocated if need be. */
static pte_t *new_pte_of(unsigned long index)
{
	unsigned long address = address_of(index);
	p4d_t *p4d = p4d_alloc(host_process.mm, pgd_offset(host_process.mm, address), address);
	pud_t *pud = pud_alloc(host_process.mm, p4d, address);
	pmd_t *pmd = pmd_alloc(host_process.mm, pud, address);

	/* Allocations of tables do not fail here. A warning would fail the launch. */
	WARN_ON(pte_alloc(host_process.mm, pmd));
	return pte_offset_kernel(pmd, address);
}

/* As __split_huge_pmd_locked(): a folio that was mapped by a PMD is remapped by PTEs. */
static void map_by_ptes(struct folio *folio, struct vm_area_struct *vma, unsigned long address)
{
	struct page *page = folio_page(folio, 0);

	folio_add_anon_rmap_ptes(folio, page, HPAGE_PMD_NR, vma, address, RMAP_EXCLUSIVE);
	folio_remove_rmap_pmd(folio, page, vma);
}

/* As do_anonymous_page(), but the folio is not zeroed, since its contents are set later. */
bool host_fault(unsigned long index, unsigned int order)
{
	struct vm_area_struct *vma = &host_process.vma;
	gfp_t gfp = HOST_NODE_GFP_FREE | (order ? __GFP_COMP : 0);
	unsigned long address = address_of(index), nr = 1UL << order;
	struct page *page = alloc_pages_node_noprof(0, gfp, order);
	struct folio *folio;
	pte_t entry;

	if (!page)
		return false;
	folio = page_rmappable_folio(page);
	__folio_mark_uptodate(folio);
	entry = pte_sw_mkyoung(mk_pte(page, vma->vm_page_prot));
	entry = pte_mkwrite(pte_mkdirty(entry), vma);
	folio_ref_add(folio, nr - 1);
	add_mm_counter(host_process.mm, MM_ANONPAGES, nr);
	folio_add_new_anon_rmap(folio, vma, address, RMAP_EXCLUSIVE);
	if (order == HPAGE_PMD_ORDER)
		map_by_ptes(folio, vma, address);
	folio_add_lru_vma(folio, vma);
	set_ptes(host_process.mm, address, new_pte_of(index), entry, nr);
	return true;
}

void host_new_process(unsigned long nr_pages)
{
	init_mm_struct();
	init_vma(nr_pages);
}

void host_read_entries(unsigned long *ptes, unsigned long nr)
{
	unsigned long index;

	for (index = 0; index < nr; index++)
		ptes[index] = pte_val(ptep_get(host_pte_of(index)));
}

void host_read_process(struct node_state *state)
{
	unsigned int i;

	state->rss = host_process.mm->rss_stat[MM_ANONPAGES].count;
	/* All other counters must be 0. */
	for (i = 0; i < NR_MM_COUNTERS; i++)
		if (i != MM_ANONPAGES && host_process.mm->rss_stat[i].count)
			state->rss = -1;
	state->anon_vma_refs = atomic_read(&host_process.anon_vma.refcount);
	state->anon_vma = (unsigned long)&host_process.anon_vma;
	state->pgoff = NODE_VMA_ADDRESS >> PAGE_SHIFT;
}
