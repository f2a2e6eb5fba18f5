/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What any oracle of folios and page tables needs to know of a kernel, as
 * that kernel's own compiler sees it: the beginning of an experiment's
 * facts.h, which goes on in the same words and undefines them. All of it
 * stands in the middle of an array of { name, value }. Includes are the
 * includer's: linux/mm.h and mm/internal.h.
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
	CONSTANT(PAGE_SIZE),
	CONSTANT(PMD_SIZE),
	CONSTANT(MM_ANONPAGES),
	CONSTANT(VM_READ),
	CONSTANT(VM_WRITE),
	CONSTANT(VM_MAYREAD),
	CONSTANT(VM_MAYWRITE),
	CONSTANT(VM_MAYEXEC),
	CONSTANT(VM_ACCOUNT),
	CONSTANT(VM_SOFTDIRTY), /* 0 without CONFIG_MEM_SOFT_DIRTY */
	OPTION(MEM_SOFT_DIRTY),
	OPTION(HAVE_ARCH_USERFAULTFD_WP),
	{ "MARKS_UFFD_WP", IS_ENABLED(CONFIG_PTE_MARKER_UFFD_WP) },
