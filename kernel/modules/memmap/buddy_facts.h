/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the oracle of deferred initialisation needs to know of a kernel beyond
 * facts.h, and what a program needs to find it all in a guest's memory.
 * Included right behind facts.h, in the same array of { name, value }: no
 * name is in both. Includes are the includer's: linux/memblock.h, linux/mm.h,
 * linux/mmzone.h, linux/poison.h and linux/vmstat.h.
 */
#define OFFSET(type, member) { #type "." #member, offsetof(struct type, member) }
#define SIZE(type) { "sizeof." #type, sizeof(struct type) }
#define CONSTANT(name) { #name, (unsigned long)(name) }

	/* The descriptor of a free page */
	OFFSET(page, lru),
	OFFSET(page, page_type),
	/* As the word holds it, not as the enumeration counts: 6.12 shifts. */
	{ "PGTY_buddy", (unsigned int)PGTY_buddy << 24 },
	CONSTANT(LIST_POISON1),
	CONSTANT(LIST_POISON2),

	/* Blocks */
	CONSTANT(MAX_PAGE_ORDER),
	CONSTANT(NR_PAGE_ORDERS),
	CONSTANT(MIGRATE_UNMOVABLE),
	CONSTANT(MIGRATE_TYPES),
	CONSTANT(PAGE_SHIFT),
	/*
	 * Whether a free range is freed before the next is initialised; growing
	 * then stops at sections, not at free pages.
	 */
	{ "FREES_BY_RANGE", __is_defined(HAVE_FREES_BY_RANGE) },

	/* Zones: a node's are in node_zones[MAX_NR_ZONES] */
#ifdef CONFIG_ZONE_DMA
	CONSTANT(ZONE_DMA),
#endif
#ifdef CONFIG_ZONE_DMA32
	CONSTANT(ZONE_DMA32),
#endif
	CONSTANT(ZONE_NORMAL),
	CONSTANT(ZONE_MOVABLE),
	CONSTANT(MAX_NR_ZONES),
	SIZE(zone),
	OFFSET(zone, zone_pgdat),
	OFFSET(zone, lock),
	OFFSET(zone, zone_start_pfn),
	OFFSET(zone, spanned_pages),
	OFFSET(zone, present_pages),
	OFFSET(zone, managed_pages),
	OFFSET(zone, free_area),
	OFFSET(zone, vm_stat),
	CONSTANT(NR_FREE_PAGES),
	/* free_area[NR_PAGE_ORDERS], each with free_list[MIGRATE_TYPES] */
	SIZE(free_area),
	OFFSET(free_area, free_list),
	OFFSET(free_area, nr_free),
	SIZE(list_head),
	OFFSET(list_head, next),
	OFFSET(list_head, prev),
#ifdef CONFIG_SMP
	/* Counts not yet added to vm_stat: one signed byte a CPU and item. */
	OFFSET(zone, per_cpu_zonestats),
	OFFSET(per_cpu_zonestat, vm_stat_diff),
#endif

	/* Events, counted by each CPU for itself */
#ifdef CONFIG_VM_EVENT_COUNTERS
	CONSTANT(PGFREE),
	OFFSET(vm_event_state, event),
#endif

	/* Nodes */
	SIZE(pglist_data),
	OFFSET(pglist_data, node_zones),
	OFFSET(pglist_data, nr_zones),
	OFFSET(pglist_data, node_id),
	OFFSET(pglist_data, node_start_pfn),
	OFFSET(pglist_data, node_present_pages),
	OFFSET(pglist_data, node_spanned_pages),
#ifdef CONFIG_DEFERRED_STRUCT_PAGE_INIT
	OFFSET(pglist_data, first_deferred_pfn),
#endif

	/* Memory as the firmware and early boot left it */
	OFFSET(memblock, memory),
	OFFSET(memblock, reserved),
	OFFSET(memblock_type, cnt),
	OFFSET(memblock_type, regions),
	SIZE(memblock_region),
	OFFSET(memblock_region, base),
	OFFSET(memblock_region, size),
	OFFSET(memblock_region, flags),
#ifdef CONFIG_NUMA
	OFFSET(memblock_region, nid),
#endif
	CONSTANT(MEMBLOCK_HOTPLUG),
	CONSTANT(MEMBLOCK_NOMAP),
	CONSTANT(MEMBLOCK_DRIVER_MANAGED),

	/* Sections: mem_section[nr / SECTIONS_PER_ROOT][nr % SECTIONS_PER_ROOT] */
	CONSTANT(SECTION_SIZE_BITS),
	CONSTANT(SECTIONS_PER_ROOT),
	CONSTANT(SECTION_MARKED_PRESENT),
	CONSTANT(SECTION_HAS_MEM_MAP),
	CONSTANT(SECTION_MAP_MASK),
	SIZE(mem_section),
	OFFSET(mem_section, section_mem_map),
	OFFSET(mem_section, usage),

#undef OFFSET
#undef SIZE
#undef CONSTANT
