/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the oracle of the memory map needs to know of a kernel, as that
 * kernel's own compiler sees it. Included in the middle of an array of
 * { name, value }: by memmap.c in a guest, by experiments/zone_device/native/glue.c in a
 * program. Includes are the includer's.
 */
#include "page_facts.h"

	{ "sizeof.dev_pagemap", sizeof(struct dev_pagemap) },
#ifdef HAVE_FOLIO_PGMAP
	{ "page.pgmap", offsetof(struct folio, pgmap) },
#else
	OFFSET(page, pgmap),
#endif
	OFFSET(page, zone_device_data),
	CONSTANT(PG_reserved),
	CONSTANT(ZONE_DEVICE),
	CONSTANT(MEMORY_DEVICE_PRIVATE),
	CONSTANT(MEMORY_DEVICE_COHERENT),
	CONSTANT(MEMORY_DEVICE_FS_DAX),
	CONSTANT(MEMORY_DEVICE_GENERIC),
	CONSTANT(MEMORY_DEVICE_PCI_P2PDMA),
	/* What went when free pages of DAX and of PCI memory lost their reference, v6.15. */
#ifdef PAGE_MAPPING_DAX_SHARED
	{ "FREE_DAX_PAGES_COUNT", 1 },
#else
	{ "FREE_DAX_PAGES_COUNT", 0 },
#endif
	/* Whether a compound page's head is prepared when all its tails are. */
	{ "HEADS_COME_LAST", __is_defined(HAVE_HEADS_COME_LAST) },
	CONSTANT(PAGES_PER_SECTION),
	CONSTANT(VMEMMAP_RESERVE_NR),
	/* Whether most tails of a device's compound page share one page of the map. */
	OPTION(ARCH_WANT_OPTIMIZE_DAX_VMEMMAP),
	CONSTANT(pageblock_nr_pages),
	CONSTANT(NR_PAGEBLOCK_BITS),
	/* What is written of a pageblock's bits with its type. */
#ifdef MIGRATETYPE_MASK
	CONSTANT(MIGRATETYPE_MASK),
#else
	{ "MIGRATETYPE_MASK", PAGEBLOCK_MIGRATETYPE_MASK | PAGEBLOCK_ISO_MASK },
#endif
	CONSTANT(MIGRATE_MOVABLE),
	{ "usage.pageblock_flags",
	  offsetof(struct mem_section_usage, pageblock_flags) },
	{ "sizeof.usage", sizeof(struct mem_section_usage) +
			  SECTION_BLOCKFLAGS_BITS / BITS_PER_BYTE },

#undef OFFSET
#undef CONSTANT
#undef OPTION
