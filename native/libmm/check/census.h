/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The census enumerates all uses of each frame, swap slot and table entry. It is
 * taken between two steps and then compared with the kernel's own counters.
 */
#ifndef REAM_CENSUS_H
#define REAM_CENSUS_H

#include <linux/mm.h>
#include <linux/mmzone.h>
#include "groups.h"
#include "hosted.h"
#include "mm_slot.h"

/* Digests of what must not differ between two kernels that behave the same. */
enum part {
	PART_vmas, PART_rss, PART_contents, PART_entries, PART_counters, PART_events,
	PART_reschedules, PART_flushes, PART_compaction, PART_folios, NR_PARTS
};

enum frame_use { UNKNOWN, IN_BUDDY, IN_PCP, IS_TABLE };

#define MOST_SWAP_SLOTS (1UL << 18)
#define ANY_INDEX ULONG_MAX

/**
 * struct census - results of one enumeration, by frame, swap slot and node
 * @use: Use of each frame, as found in free lists and page tables.
 * @references: References to a folio, indexed by its first frame.
 * @mappings: Number of PTEs that map a frame.
 * @huge_mappings: Number of PMDs that map a folio, indexed by its first frame.
 * @is_dirty: Whether a PTE that maps the frame, or a PMD that maps its folio, is dirty.
 * @slot_entries: Number of entries that refer to a swap slot.
 * @slot_index: Page index that the entry of a process expects in a swap slot. ANY_INDEX if the
 *              slot may hold a KSM page, which other entries expect at other indices.
 * @is_slot_cached: Whether the swap cache, or a per-CPU cache of free slots, uses the slot.
 * @node: Expected values of the node counters.
 * @of_group: Expected values of the memcg counters, per node. Index 0 collects uncharged pages.
 * @zone: Expected values of the zone counters.
 * @anon_folios: Number of large anonymous folios of each order.
 * @charged: Number of user pages charged to each memcg.
 * @parts: One digest for each part of what was found.
 */
struct census {
	u8 *use;
	u32 *references;
	u32 *mappings;
	u32 *huge_mappings;
	u8 *is_dirty;
	u16 *slot_entries;
	pgoff_t *slot_index;
	u8 *is_slot_cached;
	long node[MOST_NODES][NR_VM_NODE_STAT_ITEMS];
	long of_group[MOST_GROUPS][MOST_NODES][NR_VM_NODE_STAT_ITEMS];
	long zone[MOST_NODES][MAX_NR_ZONES][NR_VM_ZONE_STAT_ITEMS];
	long charged[MOST_GROUPS];
	long anon_folios[NR_PAGE_ORDERS];
	u64 parts[NR_PARTS];
};

extern struct census census;

/* From mm/ksm.c, where struct ksm_mm_slot begins like this, and from mm/vmstat.c. */
extern struct {
	struct mm_slot slot;
} ksm_mm_head;
extern struct {			/* the first member, as in mm/khugepaged.c */
	struct list_head mm_head;
} khugepaged_scan;
extern unsigned long ksm_pages_shared, ksm_pages_sharing, ksm_rmap_items;
extern atomic_long_t nr_memmap_pages, nr_memmap_boot_pages;

static inline unsigned long frame_of(const struct page *page)
{
	return page_to_pfn(page) - LIBMM_FIRST_PFN;
}

void begin_census(void);

static inline u64 mixed(u64 digest, u64 value)
{
	digest = (digest ^ value) * 0x100000001b3ULL;	/* FNV-1a, by words */
	return digest ^ digest >> 29;
}

static inline void note(enum part part, u64 value)
{
	census.parts[part] = mixed(census.parts[part], value);
}

/* Record @nr more references to @folio. */
static inline void refer(const struct folio *folio, long nr)
{
	census.references[frame_of(&folio->page)] += nr;
}

/* The checks run in this order, because later ones use what earlier ones have counted. */
void check_address_spaces(void);	/* tables.c: entries, rss, sizes, tables */
void check_vmas(void);			/* vmas.c: VMAs and the trees that index them */
void check_free_memory(void);		/* free.c: buddy, per-CPU lists */
void check_caches(void);		/* cache.c: pages of files */
void check_frames(void);		/* frames.c: every folio's references and mappings */
void check_clean(struct folio *folio, unsigned long nr);	/* dirty.c: what may be dropped */
void check_swap(void);			/* swap.c: slots */
bool has_swap_area(void);
void check_split_queued(struct folio *folio, unsigned long nr, unsigned long mapped);
void check_lists(void);			/* lists.c: LRU, split queues */
void check_counters(void);		/* counters.c: nodes, zones, groups */
void check_ksm(void);			/* ksm.c: KSM's totals and its counters per process */
void begin_pools(void);			/* pool.c: hugetlb pools and their reservations */
void count_pool_page(struct folio *folio);
void check_pools(void);
void check_soft_dirty(void);		/* soft_dirty.c: written pages are soft-dirty */

#endif
