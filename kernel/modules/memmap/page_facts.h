/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What any oracle of page descriptors needs to know of a kernel, as that
 * kernel's own compiler sees it: the beginning of a list of facts, which goes
 * on in the same words and undefines them. All of it stands in the middle of
 * an array of { name, value }. Includes are the includer's: linux/mm.h,
 * mm/internal.h. What a kernel does not have is no fact.
 */
#define OFFSET(type, member) { #type "." #member, offsetof(struct type, member) }
#define CONSTANT(name) { #name, (unsigned long)(name) }
#define OPTION(name) { #name, IS_ENABLED(CONFIG_##name) }

	{ "sizeof.page", sizeof(struct page) },
	OFFSET(page, flags),
	OFFSET(page, mapping),
	OFFSET(page, private),
	OFFSET(page, _mapcount),
	OFFSET(page, _refcount),
	OFFSET(folio, _flags_1),
	OFFSET(folio, _large_mapcount),
	OFFSET(folio, _entire_mapcount),
	OFFSET(folio, _nr_pages_mapped),
	OFFSET(folio, _pincount),
	OFFSET(folio, _deferred_list),
#if defined(HAVE_FOLIO_NR_PAGES_NAMED)
	OFFSET(folio, _folio_nr_pages),
#elif defined(NR_PAGES_IN_LARGE_FOLIO)
	{ "folio._folio_nr_pages", offsetof(struct folio, _nr_pages) },
#endif
#ifdef HAVE_COMPOUND_INFO
	{ "page.compound_head", offsetof(struct page, compound_info) },
	/* As compound_info_has_mask(), which is no constant. */
	{ "TAILS_HOLD_MASK", IS_ENABLED(CONFIG_HUGETLB_PAGE_OPTIMIZE_VMEMMAP) &&
			     (sizeof(struct page) & (sizeof(struct page) - 1)) == 0 },
#else
	OFFSET(page, compound_head),
#endif
#if defined(HAVE_MM_ID) && defined(CONFIG_MM_ID)
	OFFSET(folio, _mm_id_mapcount),
	OFFSET(folio, _mm_ids),
	CONSTANT(FOLIO_MM_IDS_SHARED_BIT),
#endif
	CONSTANT(PG_head),
	CONSTANT(NODES_PGSHIFT),
	CONSTANT(ZONES_PGSHIFT),
#if defined(CONFIG_NUMA_BALANCING) && !defined(LAST_CPUPID_NOT_IN_PAGE_FLAGS)
	CONSTANT(LAST_CPUPID_PGSHIFT),
	CONSTANT(LAST_CPUPID_MASK),
#endif
	CONSTANT(TAIL_MAPPING),
	CONSTANT(PAGE_SIZE),
