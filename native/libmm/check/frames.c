// SPDX-License-Identifier: GPL-2.0-only
/* Check that each frame is free, a page table, slab, a user's folio or the kernel's own. */
#include <linux/backing-dev.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/swap.h>
#include "slab.h"
#include "census.h"
#include "devices.h"
#include "groups.h"
#include "hosted.h"
#include "private.h"
#include "steps.h"
#include "trees.h"

#define RMAP_EVERY 16	/* every 16th check also walks rmap of every folio */

static unsigned long nr_checks;

/* --- one folio of user space ------------------------------------------- */

static unsigned long check_mapcounts(struct folio *folio, unsigned long nr)
{
	unsigned long first = frame_of(&folio->page), huge = census.huge_mappings[first];
	unsigned long all = huge, mapped = 0, i;

	for (i = 0; i < nr; i++) {
		struct page *page = folio_page(folio, i);
		long counted = census.mappings[first + i];
		long is = atomic_read(&page->_mapcount) + 1;

		all += counted;
		mapped += counted > 0;
		if (is != counted)
			wrong("frame %#lx: _mapcount is %ld, and %ld entries map it",
			      page_to_pfn(page), is, counted);
		if (nr > 1 && PageHWPoison(page) && !folio_test_has_hwpoisoned(folio))
			wrong("frame %#lx is broken, and its large folio does not say so",
			      page_to_pfn(page));
		if (folio_test_anon(folio) && PageAnonExclusive(page) && counted + huge > 1)
			wrong("frame %#lx is exclusive to a process, and %ld entries map it",
			      page_to_pfn(page), counted + huge);
	}
	if (nr > 1) {
		if (folio_mapcount(folio) != all)
			wrong("folio %#lx: its mapcount is %d, and %lu entries map it",
			      folio_pfn(folio), folio_mapcount(folio), all);
		if (atomic_read(&folio->_entire_mapcount) + 1 != huge)
			wrong("folio %#lx: _entire_mapcount is %d, and %lu huge entries map it",
			      folio_pfn(folio), atomic_read(&folio->_entire_mapcount) + 1, huge);
		if (atomic_read(&folio->_nr_pages_mapped) != mapped + (huge ? ENTIRELY_MAPPED : 0))
			wrong("folio %#lx: _nr_pages_mapped is %#x, and %lu pages are mapped",
			      folio_pfn(folio), atomic_read(&folio->_nr_pages_mapped), mapped);
	}
	return huge ? nr : mapped;
}

/* Whether writeback runs on the device of a folio's file: it holds a batch of folios. */
static bool is_being_flushed(struct folio *folio)
{
	struct bdi_writeback *wb;

	if (!on_disk(folio, 0))
		return false;
	list_for_each_entry(wb, &inode_to_bdi(folio->mapping->host)->wb_list, bdi_node)
		if (writeback_in_progress(wb))
			return true;
	return false;
}

static void check_references(struct folio *folio, unsigned long nr)
{
	long counted = census.references[frame_of(&folio->page)];
	long others = counted - folio_mapcount(folio);

	if (folio_test_swapcache(folio) || (folio->mapping && !folio_test_anon(folio)))
		counted += nr;
	if (on_disk(folio, 0) && folio_test_private(folio))
		counted++;
	if (folio_ref_count(folio) == counted + 1 && is_being_flushed(folio))
		return;
	if (folio_ref_count(folio) != counted)
		wrong("folio %#lx of order %u: _refcount is %d, and %ld references are known%s%s",
		      folio_pfn(folio), folio_order(folio), folio_ref_count(folio), counted,
		      folio_test_anon(folio) ? ", anonymous" : "",
		      folio_test_swapcache(folio) ? ", in the swap cache" : "");
	else if (folio_ref_count(folio) != folio_expected_ref_count(folio) + others)
		wrong("folio %#lx cannot be moved: %d references are expected, and there are %d",
		      folio_pfn(folio), folio_expected_ref_count(folio),
		      folio_ref_count(folio) - (int)others);
}

static bool count_mapping(struct folio *folio, struct vm_area_struct *vma, unsigned long address,
			  void *to)
{
	DEFINE_FOLIO_VMA_WALK(walk, folio, vma, address, 0);

	while (page_vma_mapped_walk(&walk))
		++*(long *)to;
	return true;
}

static void check_rmap(struct folio *folio)
{
	long found = 0, mapped = folio_mapcount(folio);
	struct rmap_walk_control control = { .rmap_one = count_mapping, .arg = &found };

	if (!mapped || folio_test_ksm(folio) || is_page_of_device(&folio->page) ||
	    !folio_trylock(folio))
		return;
	rmap_walk(folio, &control);
	folio_unlock(folio);
	if (found != mapped)
		wrong("folio %#lx: rmap finds %ld of %ld mappings",
		      folio_pfn(folio), found, mapped);
}

/* The memcg that a folio or page table is charged to. 0 means none or the root. */
static int group_of(struct folio *folio)
{
	struct mem_cgroup *memcg = folio_memcg(folio);
	int group;

	for (group = 1; memcg && group < MOST_GROUPS; group++)
		if (memory_of_group(group) == memcg)
			return group;
	return 0;
}

static void count(struct folio *folio, int group, enum node_stat_item item, long nr)
{
	census.node[folio_nid(folio)][item] += nr;
	census.of_group[group][folio_nid(folio)][item] += nr;
}

static void count_in_zone(struct folio *folio, enum zone_stat_item item, long nr)
{
	census.zone[folio_nid(folio)][folio_zonenum(folio)][item] += nr;
}

/* Add a folio to the expected counters of its node, zone and memcg. */
static void count_folio(struct folio *folio, int group, unsigned long nr, unsigned long mapped)
{
	bool is_anon = folio_test_anon(folio), is_cached = folio_test_swapcache(folio);
	bool is_huge = census.huge_mappings[frame_of(&folio->page)];

	if (is_anon && nr > 1)
		census.anon_folios[folio_order(folio)]++;
	if (folio_test_lru(folio)) {
		count(folio, group, NR_LRU_BASE + list_of(folio), nr);
		count_in_zone(folio, NR_ZONE_LRU_BASE + list_of(folio), nr);
	}
	count(folio, group, is_anon ? NR_ANON_MAPPED : NR_FILE_MAPPED, mapped);
	if (is_anon && is_huge)
		count(folio, group, NR_ANON_THPS, nr);
	if (is_cached)
		count(folio, group, NR_SWAPCACHE, nr);
	if (is_cached)	/* in the memcg it does not count as NR_FILE_PAGES */
		census.node[folio_nid(folio)][NR_FILE_PAGES] += nr;
	else if (folio->mapping && !is_anon)
		count(folio, group, NR_FILE_PAGES, nr);
	if (folio_test_writeback(folio)) {
		count(folio, group, NR_WRITEBACK, nr);
		count_in_zone(folio, NR_ZONE_WRITE_PENDING, nr);
	}
	if (!is_anon && folio->mapping && folio_test_dirty(folio) &&
	    mapping_can_writeback(folio->mapping)) {
		count(folio, group, NR_FILE_DIRTY, nr);
		count_in_zone(folio, NR_ZONE_WRITE_PENDING, nr);
	}
	if (!is_anon && folio->mapping && folio_test_swapbacked(folio)) {
		count(folio, group, NR_SHMEM, nr);
		if (folio_test_pmd_mappable(folio))
			count(folio, group, NR_SHMEM_THPS, nr);
		if (is_huge)
			count(folio, group, NR_SHMEM_PMDMAPPED, nr);
	} else if (!is_anon && folio->mapping && folio_test_pmd_mappable(folio)) {
		count(folio, group, NR_FILE_THPS, nr);
		if (is_huge)
			count(folio, group, NR_FILE_PMDMAPPED, nr);
	}
	if (folio_test_mlocked(folio))
		count_in_zone(folio, NR_MLOCK, nr);
}

/* A swap fault finds the folio by its slot and rmap by its index, so both must agree. */
static void check_index_of_slot(struct folio *folio, unsigned long i, unsigned long slot)
{
	if (folio_test_anon(folio) && !folio_test_ksm(folio) && census.slot_entries[slot] &&
	    census.slot_index[slot] != ANY_INDEX &&
	    folio_pgoff(folio) + i != census.slot_index[slot])
		wrong("folio %#lx in the swap cache has page %#lx, and an entry expects %#lx",
		      folio_pfn(folio), folio_pgoff(folio) + i, census.slot_index[slot]);
}

static void count_cached_slots(struct folio *folio, unsigned long nr)
{
	unsigned long i, slot;

	for (i = 0; i < nr; i++) {
		slot = swp_offset(folio->swap) + i;
		if (slot >= MOST_SWAP_SLOTS)
			break;
		census.is_slot_cached[slot] = true;
		check_index_of_slot(folio, i, slot);
	}
}

/* The shrinker of get_huge_zero_folio() may drop the huge zero folio while it is pinned. */
static bool was_huge_zero(struct folio *folio)
{
	return folio_test_pmd_mappable(folio) && !folio_test_large_rmappable(folio) &&
	       !folio->mapping;
}

static void check_folio(struct folio *folio, unsigned long nr)
{
	unsigned long mapped = check_mapcounts(folio, nr);
	const int group = group_of(folio);

	if (is_page_of_device(&folio->page))
		refer(folio, 1);
	check_references(folio, nr);
	if (folio_test_locked(folio))
		wrong("folio %#lx is locked, and no step is under way", folio_pfn(folio));
	if (!folio_test_lru(folio) && !is_page_of_device(&folio->page) && !was_huge_zero(folio))
		wrong("folio %#lx is in no list of LRU, so it is never reclaimed",
		      folio_pfn(folio));
	check_clean(folio, nr);
	check_split_queued(folio, nr, mapped);
	count_folio(folio, group, nr, mapped);
	census.charged[group] += nr;
	if (folio_test_swapcache(folio))
		count_cached_slots(folio, nr);
	if (nr_checks % RMAP_EVERY == 0)
		check_rmap(folio);
}

/* --- every frame ------------------------------------------------------- */

static void check_free_frame(struct page *page, bool is_in_pcp)
{
	unsigned long frame = frame_of(page);

	if (page_ref_count(page))
		wrong("frame %#lx is free, and has %d references",
		      page_to_pfn(page), page_ref_count(page));
	if (page_flags(page) & PAGE_FLAGS_CHECK_AT_FREE)
		wrong("frame %#lx is free, and has flags %#lx", page_to_pfn(page),
		      page_flags(page));
	if (is_in_pcp && page->mapping)
		wrong("frame %#lx is free, and belongs to mapping %#lx",
		      page_to_pfn(page), (unsigned long)page->mapping);
	if (census.references[frame] || census.mappings[frame])
		wrong("frame %#lx is free, and entries map it", page_to_pfn(page));
}

static void check_table_frame(struct page *page)
{
	if (page_ref_count(page) != 1)
		wrong("frame %#lx is a page table, and has %d references",
		      page_to_pfn(page), page_ref_count(page));
	count(page_folio(page), group_of(page_folio(page)), NR_PAGETABLE, 1);
}

static bool is_of_users(struct folio *folio)
{
	return !is_huge_zero_folio(folio) &&
	       (folio_test_lru(folio) || folio_test_swapbacked(folio) ||
		census.references[frame_of(&folio->page)]);
}

/* A leaked folio: no user is known, but it is charged or uptodate as only user memory is. */
static bool is_lost(struct folio *folio)
{
	return folio_ref_count(folio) &&
	       (folio_test_uptodate(folio) ||
		(folio_memcg_charged(folio) && !folio_memcg_kmem(folio)));
}

/* A hwpoisoned page is on no list, but its page cache or swap cache may still have it. */
static void count_broken(struct folio *folio)
{
	const int group = group_of(folio);
	unsigned long frame = frame_of(&folio->page);

	if (folio->mapping || census.mappings[frame])
		count_folio(folio, group, 1, census.mappings[frame] > 0);
	if (folio->mapping)
		census.charged[group]++;
	if (folio_test_swapcache(folio))
		count_cached_slots(folio, 1);
}

/* Check a hugetlb folio. Hugetlb has lists of its own, and maps folios only as a whole. */
static void check_huge_page(struct folio *folio)
{
	long counted = census.huge_mappings[frame_of(&folio->page)];

	count_pool_page(folio);
	if (folio_ref_count(folio) && !folio_test_hwpoison(folio))
		check_references(folio, folio_nr_pages(folio));
	if (folio_entire_mapcount(folio) != counted)
		wrong("huge page %#lx: its mapcount is %d, and %ld entries map it",
		      folio_pfn(folio), folio_entire_mapcount(folio), counted);
}

static void count_slab(struct page *page, unsigned long bytes)
{
	const struct kmem_cache *cache = page_slab(page)->slab_cache;

	census.node[page_to_nid(page)][cache_vmstat_idx((struct kmem_cache *)cache)] += bytes;
}

/*
 * A huge page that could not be split is freed as a whole. The allocator notices
 * its hwpoisoned page only when it takes the block again. From then on it uses
 * none of the block's pages.
 */
static bool is_beside_broken(struct page *page)
{
	struct page *first = page - page_to_pfn(page) % HPAGE_PMD_NR;
	unsigned int i;

	for (i = 0; i < HPAGE_PMD_NR; i++)
		if (PageHWPoison(first + i))
			return true;
	return false;
}

/* A frame that is not free and has no known user belongs to the kernel, or has leaked. */
static void check_other_frame(struct page *page)
{
	if (is_lost(page_folio(page)))
		wrong("folio %#lx of users has %d references, and nothing has it: it is lost",
		      page_to_pfn(page), page_ref_count(page));
	else if (!page_ref_count(page) && !is_beside_broken(page))
		wrong("frame %#lx has no reference and is in no free list: it is lost",
		      page_to_pfn(page));
}

/* Check the page or folio that begins at @page. Return: its number of frames. */
static unsigned long check_frame(struct page *page)
{
	u8 use = census.use[frame_of(page)];
	unsigned long nr;

	if (use == IN_BUDDY || use == IN_PCP) {
		check_free_frame(page, use == IN_PCP);
		return 1;
	}
	if (PageReserved(page))
		return 1;
	if (PageTail(page)) {
		wrong("frame %#lx is the tail of no page", page_to_pfn(page));
		return 1;
	}
	nr = compound_nr(page);
	if (PageSlab(page))
		count_slab(page, nr << PAGE_SHIFT);
	else if (PageTable(page))
		check_table_frame(page);
	else if (PageHuge(page))
		check_huge_page(page_folio(page));
	else if (PageHWPoison(page) && nr == 1)
		count_broken(page_folio(page));
	else if (is_of_users(page_folio(page)))
		check_folio(page_folio(page), nr);
	else if (!page_has_type(page) && use != IS_TABLE)
		check_other_frame(page);
	return nr;
}

/*
 * A page pinned by FOLL_PIN must stay exclusive to its owner. Otherwise the owner's next
 * write would go to a copy. Source: sanity_check_pinned_pages() in mm/gup.c.
 */
static void check_pinned(struct page *page)
{
	struct folio *folio = page_folio(page);
	bool is_huge = census.huge_mappings[frame_of(&folio->page)];

	if (folio_test_anon(folio) && (is_huge || census.mappings[frame_of(page)]) &&
	    !PageAnonExclusive(is_huge ? &folio->page : page))
		wrong("frame %#lx is pinned and mapped, and exclusive to no process",
		      page_to_pfn(page));
}

static void count_pins(void)
{
	unsigned int i;

	for (i = 0; i < nr_most_pins(); i++) {
		bool is_get;
		long references;
		struct page *page = pinned_page(i, &references, &is_get);

		if (!page || is_zero_page(page))
			continue;
		refer(page_folio(page), references);
		if (!is_get)
			check_pinned(page);
	}
}

/* Check a device private page. Such pages are on no list. */
static void check_private(struct page *page)
{
	struct folio *folio = page_folio(page);
	const int group = group_of(folio);

	if (page_ref_count(page) != census.references[frame_of(page)])
		wrong("page %#lx of a device: _refcount is %d, and %u references are known",
		      page_to_pfn(page), page_ref_count(page), census.references[frame_of(page)]);
	count(folio, group, NR_ANON_MAPPED, check_mapcounts(folio, 1));
	census.charged[group]++;
}

void check_frames(void)
{
	unsigned long frame = 0, pfn;

	nr_checks++;
	count_pins();
	while (frame < computer.nr_frames)
		frame += check_frame(pfn_to_page(LIBMM_FIRST_PFN + frame));
	for (pfn = first_private(); is_private(pfn); pfn++)
		if (is_taken_private(pfn))
			check_private(pfn_to_page(pfn));
}
