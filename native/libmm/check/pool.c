// SPDX-License-Identifier: GPL-2.0-only
/*
 * Check the hugetlb pools: the number of huge pages, the free lists and the
 * reservations. Source: Documentation/mm/hugetlbfs_reserv.rst and the comments
 * on struct hugepage_subpool and struct resv_map.
 */
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include "census.h"
#include "hosted.h"
#include "steps.h"
#include "trees.h"

#define MOST_SUBPOOLS 16
#define IS_OWNER 1UL		/* HPAGE_RESV_OWNER, in a VMA's vm_private_data */
#define RESERVATION_FLAGS 3UL	/* HPAGE_RESV_MASK */

/**
 * struct pool - what the census found of one hstate
 * @nr: Huge pages on each node.
 * @in_use: Huge pages that have a reference.
 * @promised: Reservations that no page in use fills yet, those of subpools included.
 * @to_come: Huge pages in use whose reservation is restored when they are freed.
 */
static struct pool {
	long nr[MOST_NODES];
	long in_use;
	long promised;
	long to_come;
} pools[HUGE_MAX_HSTATE];

/* The subpool of a mount, which limits its files or reserves huge pages for them. */
static struct {
	struct hugepage_subpool *its;
	long used;
} subpools[MOST_SUBPOOLS];

static struct pool *pool_of(struct hstate *hstate)
{
	return &pools[hstate_index(hstate)];
}

static void use_subpool(struct hugepage_subpool *its, long nr)
{
	int i;

	for (i = 0; its && i < MOST_SUBPOOLS; i++) {
		if (subpools[i].its && subpools[i].its != its)
			continue;
		subpools[i].its = its;
		subpools[i].used += nr;
		return;
	}
}

void count_pool_page(struct folio *folio)
{
	struct pool *pool = pool_of(folio_hstate(folio));

	pool->nr[folio_nid(folio)]++;
	if (!folio_ref_count(folio))
		return;
	pool->in_use++;
	/* A page with this flag outlives its mapping, which has already uncharged the subpool. */
	if (!folio_test_hugetlb_restore_reserve(folio))
		use_subpool(hugetlb_folio_subpool(folio), 1);
	pool->to_come += folio_test_hugetlb_restore_reserve(folio);
	/* Its owner could use the reservation while another process has the page. */
	if (folio_test_hugetlb_restore_reserve(folio) && folio_mapped(folio))
		wrong("huge page %#lx is mapped, and its reservation is given back",
		      folio_pfn(folio));
	/* File pages may lack the migratable flag until a second fault maps them. */
	if (folio_test_anon(folio) && folio_mapped(folio) &&
	    !folio_test_hugetlb_migratable(folio) && !folio_test_hwpoison(folio))
		wrong("huge page %#lx is mapped, and says that it cannot be migrated",
		      folio_pfn(folio));
}

/* --- reservations ------------------------------------------------------- */

static long nr_in_regions(const struct resv_map *map, long from, long to)
{
	const struct file_region *region;
	long nr = 0;

	list_for_each_entry(region, &map->regions, link)
		nr += max(0L, min(region->to, to) - max(region->from, from));
	return nr;
}

static void check_map(const struct resv_map *map)
{
	const struct file_region *region;
	long end = -1, nr_spare = 0;

	if (map->adds_in_progress)
		wrong("%ld additions to a map of promised huge pages are still under way",
		      map->adds_in_progress);
	list_for_each_entry(region, &map->regions, link) {
		if (region->from >= region->to || region->from < end)
			wrong("a map of promised huge pages has %ld to %ld behind %ld",
			      region->from, region->to, end);
		end = region->to;
	}
	list_for_each_entry(region, &map->region_cache, link)
		nr_spare++;
	if (nr_spare != map->region_cache_count)
		wrong("a map of promised huge pages has %ld spare regions, and counts %ld",
		      nr_spare, map->region_cache_count);
}

#ifdef HAVE_RESV_MAP_OF_INODE
#define map_of_inode(inode) (HUGETLBFS_I(inode)->resv_map)
#else
#define map_of_inode(inode) ((const struct resv_map *)(inode)->i_data.i_private_data)
#endif

/* A page in the file's reserve map that is not in its page cache is still reserved. */
static void count_file(struct inode *inode)
{
	struct hstate *hstate = hstate_inode(inode);
	const struct resv_map *map = map_of_inode(inode);
	long nr;

	if (!map)
		return;
	check_map(map);
	nr = nr_in_regions(map, 0, LONG_MAX) - (inode->i_data.nrpages >> huge_page_order(hstate));
	pool_of(hstate)->promised += nr;
	use_subpool(HUGETLBFS_SB(inode->i_sb)->spool, nr);
}

/* A private mapping has reserved all of its pages but those in its map, which are consumed. */
static void count_vma(struct vm_area_struct *vma)
{
	unsigned long data = (unsigned long)vma->vm_private_data;
	const struct resv_map *map = (void *)(data & ~RESERVATION_FLAGS);
	struct hstate *hstate;
	long first, nr;

	if (!is_vm_hugetlb_page(vma) || vma->vm_flags & VM_MAYSHARE || !map || !(data & IS_OWNER))
		return;
	check_map(map);
	hstate = hstate_vma(vma);
	first = vma->vm_pgoff >> huge_page_order(hstate);
	nr = vma_pages(vma) >> huge_page_order(hstate);
	nr -= nr_in_regions(map, first, first + nr);
	pool_of(hstate)->promised += nr;
	use_subpool(HUGETLBFS_SB(file_inode(vma->vm_file)->i_sb)->spool, nr);
}

static void count_mount(struct hugetlbfs_sb_info *mount)
{
	struct hugepage_subpool *subpool = mount->spool;

	if (!subpool)
		return;
	use_subpool(subpool, 0);
	if (subpool->min_hpages != -1)
		pool_of(mount->hstate)->promised += subpool->rsv_hpages;
}

static void count_promises(void)
{
	static struct file_system_type *type;
	struct super_block *super;
	struct inode *inode;
	long number;

	type = type ?: get_fs_type("hugetlbfs");
	hlist_for_each_entry(super, &type->fs_supers, s_instances) {
		count_mount(HUGETLBFS_SB(super));
		list_for_each_entry(inode, &super->s_inodes, i_sb_list)
			if (S_ISREG(inode->i_mode))
				count_file(inode);
	}
	for (number = 0; number < MOST_PROCESSES; number++) {
		struct vm_area_struct *vma;

		if (!process_of(number) || !mm_of(process_of(number)))
			continue;
		VMA_ITERATOR(vmi, mm_of(process_of(number)), 0);
		for_each_vma(vmi, vma)
			count_vma(vma);
	}
}

/* --- comparison with the counters --------------------------------------- */

static void compare(const char *what, const struct hstate *hstate, long is, long counted)
{
	if (is != counted)
		wrong("%s of %s is %ld, and %ld are counted", what, hstate->name, is, counted);
}

static long length_of(const struct list_head *list)
{
	const struct list_head *at;
	long nr = 0;

	list_for_each(at, list)
		nr++;
	return nr;
}

static void check_free_list(struct hstate *hstate, int node)
{
	struct folio *folio;

	list_for_each_entry(folio, &hstate->hugepage_freelists[node], lru)
		if (folio_ref_count(folio) || !folio_test_hugetlb_freed(folio) ||
		    folio_nid(folio) != node)
			wrong("huge page %#lx is a free one of node %d, and has %d references",
			      folio_pfn(folio), node, folio_ref_count(folio));
	compare("free_huge_pages_node", hstate, hstate->free_huge_pages_node[node],
		length_of(&hstate->hugepage_freelists[node]));
}

static void check_pool(struct hstate *hstate)
{
	const struct pool *pool = pool_of(hstate);
	long nr = 0, nr_free = 0, nr_surplus = 0;
	int node;

	for_each_online_node(node) {
		nr += hstate->nr_huge_pages_node[node];
		nr_free += hstate->free_huge_pages_node[node];
		nr_surplus += hstate->surplus_huge_pages_node[node];
		compare("nr_huge_pages_node", hstate, hstate->nr_huge_pages_node[node],
			pool->nr[node]);
		check_free_list(hstate, node);
	}
	compare("nr_huge_pages", hstate, hstate->nr_huge_pages, nr);
	compare("free_huge_pages", hstate, hstate->free_huge_pages, nr_free);
	compare("surplus_huge_pages", hstate, hstate->surplus_huge_pages, nr_surplus);
	compare("max_huge_pages", hstate, hstate->max_huge_pages, nr - nr_surplus);
	compare("hugepage_activelist", hstate, length_of(&hstate->hugepage_activelist),
		pool->in_use);
	compare("nr_huge_pages less free ones", hstate, nr - nr_free, pool->in_use);
	compare("resv_huge_pages", hstate, hstate->resv_huge_pages,
		pool->promised - pool->to_come);
	if ((long)hstate->free_huge_pages < (long)hstate->resv_huge_pages)
		wrong("%lu huge pages are promised, and %lu are free", hstate->resv_huge_pages,
		      hstate->free_huge_pages);
}

static void check_subpools(void)
{
	int i;

	for (i = 0; i < MOST_SUBPOOLS && subpools[i].its; i++) {
		const struct hugepage_subpool *its = subpools[i].its;

		if (its->max_hpages != -1 && its->used_hpages != subpools[i].used)
			wrong("a mount of hugetlbfs uses %ld huge pages, and counts %ld",
			      subpools[i].used, its->used_hpages);
		if (its->min_hpages != -1 && its->max_hpages != -1 &&
		    its->rsv_hpages != max(0L, its->min_hpages - its->used_hpages))
			wrong("a mount of hugetlbfs has %ld huge pages left, of %ld, and uses %ld",
			      its->rsv_hpages, its->min_hpages, its->used_hpages);
	}
}

void begin_pools(void)
{
	memset(pools, 0, sizeof(pools));
	memset(subpools, 0, sizeof(subpools));
}

void check_pools(void)
{
	struct hstate *hstate;

	count_promises();
	for_each_hstate(hstate)
		check_pool(hstate);
	check_subpools();
}
