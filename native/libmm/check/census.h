/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A count of all memory: who says that which frame is what, and how often. It
 * is made anew between two steps, and then compared with the kernel's counters.
 */
#ifndef REAM_CENSUS_H
#define REAM_CENSUS_H

#include <linux/mm.h>
#include <linux/mmzone.h>
#include "groups.h"
#include "hosted.h"
#include "mm_slot.h"

/* What two kernels that do the same agree on, each as one number of all of it. */
enum part {
	PART_vmas, PART_rss, PART_contents, PART_entries, PART_counters, PART_events,
	PART_reschedules, PART_flushes, PART_compaction, PART_folios, NR_PARTS
};

enum frame_use { UNKNOWN, IN_BUDDY, IN_PCP, IS_TABLE };

#define MOST_SWAP_SLOTS (1UL << 18)
#define ANY_INDEX ULONG_MAX

/**
 * struct census - what was found this time, by frame, swap slot and node
 * @use: What lists and tables say that a frame is.
 * @references: To a folio, by its first frame.
 * @mappings: Entries of one page that map a frame.
 * @huge_mappings: Entries of tables above that map a folio, by its first frame.
 * @is_dirty: Whether an entry that maps a frame is, or one above that maps its folio.
 * @slot_entries: Entries that name a swap slot.
 * @slot_index: The index of the page that an entry of a process expects in a slot; ANY_INDEX: a
 *              page that KSM merged has been there, which other entries expect elsewhere.
 * @is_slot_cached: Whether folios of the swap cache, or lists of free slots, have it.
 * @node: What the counters of a node must be.
 * @of_group: What those of a group must be on each node; groups[0]: of none.
 * @zone: What the counters of a node's zones must be.
 * @anon_folios: Of each order, large ones.
 * @charged: Pages that users have, by number of the group.
 * @parts: Numbers of all that was found.
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

/* mm/ksm.c, where a slot begins so, and mm/vmstat.c. */
extern struct {
	struct mm_slot slot;
} ksm_mm_head;
extern struct {			/* as it begins in mm/khugepaged.c */
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

/* A folio is referred to so often more. */
static inline void refer(const struct folio *folio, long nr)
{
	census.references[frame_of(&folio->page)] += nr;
}

/* Every part compares what it knows; in this order, since the later ones use the earlier ones. */
void check_address_spaces(void);	/* tables.c: entries, rss, sizes, tables */
void check_vmas(void);			/* vmas.c: VMAs, and who finds them */
void check_free_memory(void);		/* free.c: buddy, per-CPU lists */
void check_caches(void);		/* cache.c: pages of files */
void check_frames(void);		/* frames.c: every folio's references and mappings */
void check_clean(struct folio *folio, unsigned long nr);	/* dirty.c: what may be dropped */
void check_swap(void);			/* swap.c: slots */
bool has_swap_area(void);
void check_split_queued(struct folio *folio, unsigned long nr, unsigned long mapped);
void check_lists(void);			/* lists.c: LRU, split queues */
void check_counters(void);		/* counters.c: nodes, zones, groups */
void check_ksm(void);			/* ksm.c: what processes and all of KSM say */
void begin_pools(void);			/* pool.c: huge pages, and to whom they are promised */
void count_pool_page(struct folio *folio);
void check_pools(void);
void check_soft_dirty(void);		/* soft_dirty.c: what was written is noted */

#endif
