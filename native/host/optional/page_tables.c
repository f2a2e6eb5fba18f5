// SPDX-License-Identifier: GPL-2.0-only
/*
 * What hosted kernels with page tables need: an allocator of their frames,
 * variables of page table code, and counters of an address space. An experiment
 * uses it if its file `objects` lists ream/page_tables.o.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/percpu_counter.h>
#include <linux/pgtable.h>
#include <linux/rwsem.h>
#include <linux/seqlock.h>
#include <asm/pgalloc.h>
#include <asm/processor.h>
#include <asm/cacheflush.h>
#include "kernel.h"
#include "page_tables.h"
#include "paging_place.h"

/*
 * mm/page_alloc.c. host_give_cpus() sets which nodes have CPUs.
 * If mm/page_alloc.o is linked, it replaces the weak functions here. Page tables
 * still come from here, because they are allocated by alloc_pages_noprof() of
 * mm/mempolicy.c, unless the experiment defines that function.
 */
nodemask_t node_states[NR_NODE_STATES] __weak;

/* lib/percpu_counter.c: the kernel's value for up to 16 CPUs. */
int percpu_counter_batch = 32;

static unsigned long next_table_pfn;

void host_reset_tables(unsigned long pfn)
{
	next_table_pfn = pfn;
}

/*
 * Page tables and pages of the mmu_gather are allocated frame by frame, and all
 * freed before the next sample. The kernel's own allocator would serve a fork of
 * this size from a free list that is in the cache of the CPU.
 */
static struct page *take_table(gfp_t flags)
{
	struct page *page = pfn_to_page(next_table_pfn++);

	memset(page, 0, sizeof(*page));
	init_page_count(page);
	atomic_set(&page->_mapcount, -1);
	if (flags & __GFP_ZERO)
		clear_page(page_address(page));
	return page;
}

struct page *__weak alloc_pages_noprof(gfp_t flags, unsigned int order)
{
	HOST_STUB("custom");
	return order ? NULL : take_table(flags);
}

struct page *__weak __alloc_pages_noprof(gfp_t flags, unsigned int order, int nid,
				  nodemask_t *nodes)
{
	HOST_STUB("custom");
	return order ? NULL : take_table(flags);
}

unsigned long __weak get_free_pages_noprof(gfp_t flags, unsigned int order)
{
	HOST_STUB("custom");
	return order ? 0 : (unsigned long)page_address(take_table(flags));
}

unsigned long __weak get_zeroed_page_noprof(gfp_t flags)
{
	HOST_STUB("custom");
	return (unsigned long)page_address(take_table(flags | __GFP_ZERO));
}

/*
 * As in the kernel, but without disabling interrupts, which a program has none
 * of. The count is always exact, and nothing here reads the per-CPU parts.
 */
void percpu_counter_add_batch(struct percpu_counter *counter, s64 amount,
			      s32 batch)
{
	counter->count += amount;
}

#ifdef CONFIG_ARM64
/* arch/arm64/mm/flush.c: no code is executed from the pages that are mapped here. */
void __sync_icache_dcache(pte_t pte)
{
	HOST_STUB("custom");
}
#endif

void host_place_frames(void)
{
	host_place_map(PAGING_TABLE_PFN, (void *)PAGING_MAP_ADDRESS);
	host_place_contents(PAGING_TABLE_PFN, (void *)PAGING_RAM_ADDRESS);
	host_reset_tables(PAGING_TABLE_PFN);
}

struct mm_struct *host_new_mm(void)
{
	return host_alloc(sizeof(struct mm_struct) + cpumask_size());
}

void host_init_mm(struct mm_struct *mm)
{
	int i;

	memset(mm, 0, sizeof(*mm));
	atomic_set(&mm->mm_users, 1);
	atomic_set(&mm->mm_count, 1);
	atomic_long_set(&mm->mmap_lock.count, RWSEM_WRITER_LOCKED);
	spin_lock_init(&mm->page_table_lock);
	seqcount_init(&mm->write_protect_seq);
	INIT_LIST_HEAD(&mm->mmlist);
	for (i = 0; i < NR_MM_COUNTERS; i++)
		raw_spin_lock_init(&mm->rss_stat[i].lock);
	cpumask_clear(mm_cpumask(mm));
	mm->pgd = (pgd_t *)get_zeroed_page(GFP_KERNEL);
}

/* The page table of @address, allocated as by a fault. */
static pte_t *table_of(struct mm_struct *mm, unsigned long address)
{
	p4d_t *p4d = p4d_alloc(mm, pgd_offset(mm, address), address);
	pud_t *pud = pud_alloc(mm, p4d, address);
	pmd_t *pmd = pmd_alloc(mm, pud, address);

	/* The allocator here does not fail. A warning would fail the launch. */
	WARN_ON(pte_alloc(mm, pmd));
	return (pte_t *)pmd_page_vaddr(*pmd);
}

/* The page table of @address, or NULL. It allocates no tables. */
static pte_t *look_up_table(struct mm_struct *mm, unsigned long address)
{
	pmd_t *pmd = host_look_up_pmd(mm, address);

	return pmd && !pmd_none(*pmd) ? (pte_t *)pmd_page_vaddr(*pmd) : NULL;
}

void host_fill_tables(struct mm_struct *mm, unsigned long address,
		      const unsigned long *entries, unsigned long nr)
{
	unsigned long end = address + nr * PAGE_SIZE;
	unsigned long at, next;

	for (at = address; at != end; at = next) {
		next = pmd_addr_end(at, end);
		nr = (next - at) / PAGE_SIZE;
		memcpy(table_of(mm, at) + pte_index(at), entries,
		       nr * sizeof(*entries));
		entries += nr;
	}
}

unsigned long host_read_tables(struct mm_struct *mm, unsigned long start,
			       unsigned long *to, unsigned long nr)
{
	unsigned long end = start + nr * PAGE_SIZE;
	unsigned long at, nr_stray = 0;

	for (at = start & PMD_MASK; at < end; at += PMD_SIZE) {
		const pte_t *table = look_up_table(mm, at);
		unsigned long from = max(at, start), to_end = min(at + PMD_SIZE, end);
		int i;

		if (!table) {
			memset(to, 0, (to_end - from) / PAGE_SIZE * sizeof(*to));
			to += (to_end - from) / PAGE_SIZE;
			continue;
		}
		memcpy(to, table + pte_index(from),
		       (to_end - from) / PAGE_SIZE * sizeof(*to));
		to += (to_end - from) / PAGE_SIZE;
		for (i = 0; i < PTRS_PER_PTE; i++) {
			unsigned long address = at + i * PAGE_SIZE;

			if (address < from || address >= to_end)
				nr_stray += !!pte_val(table[i]);
		}
	}
	return nr_stray;
}

long host_lost_tables(struct mm_struct *mm)
{
	unsigned long bytes = 0;
	int i, j, k;

	for (i = 0; i < PTRS_PER_PGD; i++) {
		pud_t *pud;

		if (pgd_none(mm->pgd[i]) || p4d_none(*p4d_offset(&mm->pgd[i], 0)))
			continue;
		pud = p4d_pgtable(*p4d_offset(&mm->pgd[i], 0));
		bytes += PTRS_PER_PUD * sizeof(pud_t);
		for (j = 0; j < PTRS_PER_PUD; j++) {
			pmd_t *pmd;

			if (pud_none(pud[j]))
				continue;
			pmd = pud_pgtable(pud[j]);
			bytes += PTRS_PER_PMD * sizeof(pmd_t);
			for (k = 0; k < PTRS_PER_PMD; k++)
				bytes += pmd_none(pmd[k]) ? 0 :
					 PTRS_PER_PTE * sizeof(pte_t);
		}
	}
	return mm_pgtables_bytes(mm) - bytes;
}
