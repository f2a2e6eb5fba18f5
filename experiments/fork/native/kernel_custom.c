// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the fork experiment: functions that are deliberately not the kernel's,
 * and how each differs. See native/host/kernel/kernel.h for the kinds.
 */
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/rmap.h>
#include <linux/sched.h>
#include <linux/swap.h>
#include <asm/page.h>
#include "internal.h"
#include "kernel.h"
#include "fork.h"
#include "fork_kernel.h"
#include "page_tables.h"
#include "tlb_flushes.h"

static struct {
	unsigned long first_spare_pfn;
	unsigned long next_spare_pfn;
	unsigned long end_spare_pfn;
	struct fork_result counts;
} state;

void fork_reset(unsigned long spare_pfn, unsigned long nr_spare)
{
	memset(&state, 0, sizeof(state));
	state.first_spare_pfn = spare_pfn;
	state.next_spare_pfn = spare_pfn;
	state.end_spare_pfn = spare_pfn + nr_spare;
	host_reset_flushes();
}

void fork_vma_ends(void)
{
	state.counts.nr_flushes_of_vma = host_flushes.nr;
}

void fork_read_counts(struct fork_result *result)
{
	result->exits_flush = !IS_ENABLED(CONFIG_ARM64);
	result->flush_start = host_flushes.start;
	result->flush_end = host_flushes.end;
	result->nr_flushes_of_vma = state.counts.nr_flushes_of_vma;
	result->nr_freed = state.counts.nr_freed;
	result->nr_deferred = state.counts.nr_deferred;
	result->nr_swap_duplicated = state.counts.nr_swap_duplicated;
	result->nr_swap_freed = state.counts.nr_swap_freed;
	result->nr_marked_dirty = state.counts.nr_marked_dirty;
	result->nr_accessed = state.counts.nr_accessed;
}

/* fork_reset() takes everything back at once. */
void __free_pages(struct page *page, unsigned int order)
{
	HOST_STUB("custom");
}

void free_pages(unsigned long address, unsigned int order)
{
	HOST_STUB("custom");
}

/* A page for the child's copy of a pinned one, in the order the oracle has. */
static struct folio *next_spare(unsigned int order)
{
	if (order || state.next_spare_pfn == state.end_spare_pfn)
		return NULL;
	return page_folio(pfn_to_page(state.next_spare_pfn++));
}

#ifdef HAVE_VMA_ALLOC_FOLIO_OF_HUGEPAGE
struct folio *vma_alloc_folio_noprof(gfp_t flags, int order,
				     struct vm_area_struct *vma,
				     unsigned long address, bool hugepage)
#else
struct folio *vma_alloc_folio_noprof(gfp_t flags, int order,
				     struct vm_area_struct *vma,
				     unsigned long address)
#endif
{
	HOST_STUB("custom");
	return next_spare(order);
}

struct folio *folio_alloc_mpol_noprof(gfp_t flags, unsigned int order,
				      struct mempolicy *policy, pgoff_t index,
				      int nid)
{
	HOST_STUB("custom");
	return next_spare(order);
}

struct folio *folio_alloc_noprof(gfp_t flags, unsigned int order)
{
	HOST_STUB("custom");
	return next_spare(order);
}

/*
 * References are dropped as free_pages_and_swap_cache() drops them, all of a
 * folio's at once; what would be freed is counted, and keeps its contents.
 */
void free_pages_and_swap_cache(struct encoded_page **pages, int nr)
{
	int i;

	HOST_STUB("custom");
	for (i = 0; i < nr; i++) {
		struct folio *folio = page_folio(encoded_page_ptr(pages[i]));
		int refs = 1;

		if (encoded_page_flags(pages[i]) & ENCODED_PAGE_BIT_NR_PAGES_NEXT)
			refs = encoded_nr_pages(pages[++i]);
		if (folio_ref_sub_and_test(folio, refs))
			state.counts.nr_freed++;
	}
}

/* A new page that was not needed is the next to be given out again. */
void __folio_put(struct folio *folio)
{
	if (folio_pfn(folio) >= state.first_spare_pfn &&
	    folio_pfn(folio) + 1 == state.next_spare_pfn) {
		folio_ref_unfreeze(folio, 1);
		state.next_spare_pfn--;
		return;
	}
	state.counts.nr_freed++;
}

/* The queue itself belongs to splitting folios, which nothing here does. */
void deferred_split_folio(struct folio *folio, bool partially_mapped)
{
	state.counts.nr_deferred++;
}

/* Swap has no devices here: what would be counted there is counted here. */
int fork_swap_duplicate(swp_entry_t entry)
{
	state.counts.nr_swap_duplicated++;
	return 0;
}

void fork_swap_free(swp_entry_t entry, int nr)
{
	state.counts.nr_swap_freed += nr;
}

/* The page cache, which would write it back, is not here. */
bool folio_mark_dirty(struct folio *folio)
{
	state.counts.nr_marked_dirty++;
	return true;
}

/* Nobody waits for it. */
void folio_unlock(struct folio *folio)
{
	folio_xor_flags_has_waiters(folio, 1 << PG_locked);
}

void unlock_page(struct page *page)
{
	folio_unlock(page_folio(page));
}

void folio_mark_accessed(struct folio *folio)
{
	state.counts.nr_accessed++;
}

#ifdef CONFIG_ARCH_HAS_COPY_MC
/* Memory that a program has does not fail machine checks it could survive. */
unsigned long copy_mc_to_kernel(void *to, const void *from, unsigned int bytes)
{
	memcpy(to, from, bytes);
	return 0;
}
#endif
