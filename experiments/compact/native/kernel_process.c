// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the compact experiment: a process that takes all memory of the node,
 * page by page as its faults would, and gives some of them back.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/rmap.h>
#include <linux/swap.h>
#include "internal.h"
#include "kernel.h"
#include "page_tables.h"
#include "compact_kernel.h"

static unsigned long nr_mapped;

/* As zap_present_ptes(), and what the end of its gather does. */
static void give_back(unsigned long index)
{
	unsigned long address = NODE_VMA_ADDRESS + index * PAGE_SIZE;
	pte_t entry = ptep_get_and_clear(host_process.mm, address, host_pte_of(index));
	struct page *page = pte_page(entry);
	struct folio *folio = page_folio(page);

	folio_remove_rmap_pte(folio, page, &host_process.vma);
	add_mm_counter(host_process.mm, MM_ANONPAGES, -1);
	folio_put(folio);
}

static bool is_one_of(unsigned long index, unsigned int every)
{
	return every && index % every == 0;
}

/* Take a further reference to some pages, so that they stay in place. */
static void hold_some(const struct compact_request *request)
{
	unsigned long index;

	for (index = 0; index < nr_mapped; index++) {
		pte_t entry = ptep_get(host_pte_of(index));

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

	host_reset_tables(NODE_TABLE_PFN);
	host_new_process(request->nr_pages);
	for (nr_mapped = 0; nr_mapped < request->nr_pages; nr_mapped++)
		if (!host_fault(nr_mapped, 0))
			break;
	lru_add_drain();
	end = nr_mapped - nr_mapped % request->group;
	for (i = 0; i < request->nr_freed; i++)
		if (request->freed[i] < end)
			give_back(request->freed[i]);
	lru_add_drain();
	hold_some(request);
	return nr_mapped;
}
