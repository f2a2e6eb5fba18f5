/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the oracle of the memory map needs to know of a kernel, as that
 * kernel's own compiler sees it. Included in the middle of an array of
 * { name, value }: by memmap.c in a guest, by experiments/zone_device/native/glue.c in a
 * program. Includes are the includer's.
 */
#define OFFSET(type, member) { #type "." #member, offsetof(struct type, member) }
#define CONSTANT(name) { #name, (unsigned long)(name) }

	{ "sizeof.page", sizeof(struct page) },
	{ "sizeof.dev_pagemap", sizeof(struct dev_pagemap) },
	OFFSET(page, flags),
	OFFSET(page, pgmap),
	OFFSET(page, compound_head),
	OFFSET(page, zone_device_data),
	OFFSET(page, mapping),
	OFFSET(page, private),
	OFFSET(page, _mapcount),
	OFFSET(page, _refcount),
	OFFSET(folio, _flags_1),
	OFFSET(folio, _large_mapcount),
	OFFSET(folio, _entire_mapcount),
	OFFSET(folio, _nr_pages_mapped),
	OFFSET(folio, _pincount),
	OFFSET(folio, _folio_nr_pages),
	CONSTANT(PG_head),
	CONSTANT(PG_reserved),
	CONSTANT(NODES_PGSHIFT),
	CONSTANT(ZONES_PGSHIFT),
#if defined(CONFIG_NUMA_BALANCING) && !defined(LAST_CPUPID_NOT_IN_PAGE_FLAGS)
	CONSTANT(LAST_CPUPID_PGSHIFT),
	CONSTANT(LAST_CPUPID_MASK),
#endif
	CONSTANT(ZONE_DEVICE),
	CONSTANT(TAIL_MAPPING),
	CONSTANT(MEMORY_DEVICE_PRIVATE),
	CONSTANT(MEMORY_DEVICE_COHERENT),
	CONSTANT(MEMORY_DEVICE_FS_DAX),
	CONSTANT(MEMORY_DEVICE_GENERIC),
	CONSTANT(MEMORY_DEVICE_PCI_P2PDMA),
	CONSTANT(PAGE_SIZE),
	CONSTANT(PAGES_PER_SECTION),
	CONSTANT(VMEMMAP_RESERVE_NR),
	CONSTANT(pageblock_nr_pages),
	CONSTANT(NR_PAGEBLOCK_BITS),
	CONSTANT(MIGRATETYPE_MASK),
	CONSTANT(MIGRATE_MOVABLE),
	{ "usage.pageblock_flags",
	  offsetof(struct mem_section_usage, pageblock_flags) },
	{ "sizeof.usage", sizeof(struct mem_section_usage) +
			  SECTION_BLOCKFLAGS_BITS / BITS_PER_BYTE },

#undef OFFSET
#undef CONSTANT
