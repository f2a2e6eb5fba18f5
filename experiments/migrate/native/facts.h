/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the oracle of migration needs to know of a kernel, as that kernel's
 * own compiler sees it. Included in the middle of an array of { name, value }.
 * Includes are the includer's: linux/mm.h, linux/migrate.h, linux/poison.h,
 * linux/swap.h, linux/swapops.h and mm/internal.h.
 */
#define OFFSET(type, member) { #type "." #member, offsetof(struct type, member) }
#define CONSTANT(name) { #name, (unsigned long)(name) }
#define OPTION(name) { #name, IS_ENABLED(CONFIG_##name) }

	{ "sizeof.page", sizeof(struct page) },
	OFFSET(page, flags),
	OFFSET(page, lru),
	OFFSET(page, compound_head),
	OFFSET(page, mapping),
	OFFSET(page, index),
	OFFSET(page, private),
	OFFSET(page, _mapcount),
	OFFSET(page, _refcount),
	OFFSET(folio, _flags_1),
	OFFSET(folio, _large_mapcount),
	OFFSET(folio, _entire_mapcount),
	OFFSET(folio, _nr_pages_mapped),
	OFFSET(folio, _pincount),
	OFFSET(folio, _folio_nr_pages),
	OFFSET(folio, _deferred_list),
	CONSTANT(PG_locked),
	CONSTANT(PG_writeback),
	CONSTANT(PG_referenced),
	CONSTANT(PG_uptodate),
	CONSTANT(PG_dirty),
	CONSTANT(PG_lru),
	CONSTANT(PG_head),
	CONSTANT(PG_active),
	CONSTANT(PG_workingset),
	CONSTANT(PG_checked),
	CONSTANT(PG_swapbacked),
	CONSTANT(PG_unevictable),
	CONSTANT(PG_mlocked),
	CONSTANT(PG_hwpoison),
	CONSTANT(PG_anon_exclusive),
	CONSTANT(PG_large_rmappable),
	CONSTANT(PG_partially_mapped),
	CONSTANT(NODES_PGSHIFT),
	CONSTANT(ZONES_PGSHIFT),
#if defined(CONFIG_NUMA_BALANCING) && !defined(LAST_CPUPID_NOT_IN_PAGE_FLAGS)
	CONSTANT(LAST_CPUPID_PGSHIFT),
	CONSTANT(LAST_CPUPID_MASK),
#endif
	CONSTANT(ZONE_NORMAL),
	CONSTANT(TAIL_MAPPING),
	CONSTANT(PAGE_MAPPING_ANON),
	CONSTANT(ENTIRELY_MAPPED),
	CONSTANT(LIST_POISON1),
	CONSTANT(LIST_POISON2),
	CONSTANT(PAGE_SIZE),
	CONSTANT(PMD_SIZE),
	CONSTANT(HPAGE_PMD_ORDER),
	CONSTANT(MM_ANONPAGES),
	CONSTANT(SWP_HWPOISON),
	CONSTANT(MIGRATE_ASYNC),
	CONSTANT(MIGRATE_SYNC_LIGHT),
	CONSTANT(MIGRATE_SYNC),
	CONSTANT(MR_COMPACTION),
	CONSTANT(MR_MEMORY_FAILURE),
	CONSTANT(MR_MEMORY_HOTPLUG),
	CONSTANT(MR_SYSCALL),
	CONSTANT(MR_MEMPOLICY_MBIND),
	CONSTANT(MR_NUMA_MISPLACED),
	CONSTANT(MR_CONTIG_RANGE),
	CONSTANT(MR_LONGTERM_PIN),
	CONSTANT(MR_DEMOTION),
	CONSTANT(MR_DAMON),
	CONSTANT(VM_READ),
	CONSTANT(VM_WRITE),
	CONSTANT(VM_MAYREAD),
	CONSTANT(VM_MAYWRITE),
	CONSTANT(VM_MAYEXEC),
	CONSTANT(VM_ACCOUNT),
	CONSTANT(VM_LOCKED),
	CONSTANT(VM_SOFTDIRTY), /* 0 without CONFIG_MEM_SOFT_DIRTY */
	OPTION(MEM_SOFT_DIRTY),
	OPTION(HAVE_ARCH_USERFAULTFD_WP),
	{ "MARKS_UFFD_WP", IS_ENABLED(CONFIG_PTE_MARKER_UFFD_WP) },

#undef OFFSET
#undef CONSTANT
#undef OPTION
