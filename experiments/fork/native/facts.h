/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the oracle of fork and unmap needs to know of a kernel, as that
 * kernel's own compiler sees it. Included in the middle of an array of
 * { name, value }. Includes are the includer's: linux/mm.h, linux/swap.h,
 * linux/swapops.h, linux/sched/coredump.h and mm/internal.h.
 */
#define OFFSET(type, member) { #type "." #member, offsetof(struct type, member) }
#define CONSTANT(name) { #name, (unsigned long)(name) }
#define OPTION(name) { #name, IS_ENABLED(CONFIG_##name) }

	{ "sizeof.page", sizeof(struct page) },
	OFFSET(page, flags),
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
	CONSTANT(PG_referenced),
	CONSTANT(PG_uptodate),
	CONSTANT(PG_dirty),
	CONSTANT(PG_lru),
	CONSTANT(PG_head),
	CONSTANT(PG_active),
	CONSTANT(PG_workingset),
	CONSTANT(PG_swapbacked),
	CONSTANT(PG_anon_exclusive),
	CONSTANT(PG_large_rmappable),
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
	CONSTANT(GUP_PIN_COUNTING_BIAS),
	CONSTANT(PAGE_SIZE),
	CONSTANT(PMD_SIZE),
	CONSTANT(MM_FILEPAGES),
	CONSTANT(MM_ANONPAGES),
	CONSTANT(MM_SWAPENTS),
	CONSTANT(MM_SHMEMPAGES),
	CONSTANT(NR_MM_COUNTERS),
	CONSTANT(MMF_HAS_PINNED),
	CONSTANT(VM_READ),
	CONSTANT(VM_WRITE),
	CONSTANT(VM_EXEC),
	CONSTANT(VM_SHARED),
	CONSTANT(VM_MAYREAD),
	CONSTANT(VM_MAYWRITE),
	CONSTANT(VM_MAYEXEC),
	CONSTANT(VM_MAYSHARE),
	CONSTANT(VM_MIXEDMAP),
	CONSTANT(VM_SEQ_READ),
	CONSTANT(VM_RAND_READ),
	CONSTANT(VM_ACCOUNT),
	CONSTANT(VM_SOFTDIRTY), /* 0 without CONFIG_MEM_SOFT_DIRTY */
	CONSTANT(VM_UFFD_WP),
	CONSTANT(MAX_SWAPFILES),
#ifdef CONFIG_MIGRATION
	CONSTANT(SWP_MIGRATION_READ),
	CONSTANT(SWP_MIGRATION_READ_EXCLUSIVE),
	CONSTANT(SWP_MIGRATION_WRITE),
#endif
#ifdef CONFIG_DEVICE_PRIVATE
	CONSTANT(SWP_DEVICE_READ),
	CONSTANT(SWP_DEVICE_WRITE),
	CONSTANT(SWP_DEVICE_EXCLUSIVE_READ),
	CONSTANT(SWP_DEVICE_EXCLUSIVE_WRITE),
#endif
#ifdef CONFIG_MEMORY_FAILURE
	CONSTANT(SWP_HWPOISON),
#endif
	CONSTANT(SWP_PTE_MARKER),
	CONSTANT(PTE_MARKER_UFFD_WP),
	CONSTANT(PTE_MARKER_POISONED),
	OPTION(SWAP),
	OPTION(MEM_SOFT_DIRTY),
	OPTION(HAVE_ARCH_USERFAULTFD_WP),
	{ "MARKS_UFFD_WP", IS_ENABLED(CONFIG_PTE_MARKER_UFFD_WP) },

#undef OFFSET
#undef CONSTANT
#undef OPTION
