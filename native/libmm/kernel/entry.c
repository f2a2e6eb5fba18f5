// SPDX-License-Identifier: GPL-2.0-only
/* Decode the page table entry of one page, at whichever level it is. */
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/swap.h>
#include "entry.h"
#include "hosted.h"
#include "trees.h"

static enum entry_state state_of(softleaf_t entry)
{
	return softleaf_is_marker(entry) ? IS_MARKER :
	       softleaf_is_migration(entry) ? IS_MOVING :
	       softleaf_is_hwpoison(entry) ? IS_BROKEN :
	       softleaf_is_device_private(entry) ? IS_PRIVATE :
	       softleaf_is_swap(entry) ? IS_SWAPPED : IS_OTHER;
}

/* A PMD that maps a page has the same flag bits as a PTE, so only the PFN differs. */
struct entry entry_at(struct mm_struct *mm, unsigned long address)
{
	struct translation found = translate(mm, address);
	unsigned long within = found.is_huge ? (address & ~PMD_MASK) >> PAGE_SHIFT : 0;
	struct entry entry = { .is_huge = found.is_huge };
	softleaf_t leaf;
	pte_t pte;

	if (!found.at || !*found.at)
		return entry;
	pte = __pte(*found.at);
	if (pte_present(pte)) {
		entry.state = IS_PRESENT;
		entry.is_soft_dirty = pte_soft_dirty(pte);
		entry.is_protected = pte_uffd(pte);
		entry.is_by_frame = !found.is_huge && pte_special(pte) &&
				    !is_zero_pfn(pte_pfn(pte));
		entry.is_writable = pte_write(pte);
		entry.number = within + (found.is_huge ? pmd_pfn(__pmd(*found.at)) : pte_pfn(pte));
		return entry;
	}
	leaf = softleaf_from_pte(pte);
	entry.state = state_of(leaf);
	entry.is_soft_dirty = pte_swp_soft_dirty(pte);
	entry.is_protected = pte_swp_uffd(pte) || pte_is_uffd_wp_marker(pte);
	entry.is_guard = softleaf_is_guard_marker(leaf);
	if (entry.state == IS_SWAPPED)
		entry.number = swp_offset(leaf);
	else if (entry.state != IS_MARKER)
		entry.number = softleaf_to_pfn(leaf) + within;
	return entry;
}

struct folio *folio_at(const struct entry *entry)
{
	struct folio *folio;

	if (entry->state == IS_PRIVATE)
		return page_folio(pfn_to_page(entry->number));
	if ((entry->state != IS_PRESENT && entry->state != IS_MOVING) || entry->is_by_frame ||
	    !is_ram(entry->number))
		return NULL;
	folio = page_folio(pfn_to_page(entry->number));
	return is_zero_pfn(entry->number) || is_huge_zero_folio(folio) ? NULL : folio;
}
