// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's side of memremap_pages() and memunmap_pages(): compiled by
 * kbuild against the variant's own headers, linked to the variant's own
 * memremap.o, memory_hotplug.o, sparse.o, page_alloc.o and what these call.
 *
 * A node is booted that has no device yet. Within the clock there is one call,
 * down to the page allocator that it gets the memory map's frames of.
 */
#include <linux/err.h>
#include <linux/ioport.h>
#include <linux/memblock.h>
#include <linux/memory_hotplug.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/string.h>
#include <asm/pgtable.h>
#include <asm/processor.h>
#include "internal.h"
#include "kernel.h"
#include "node.h"
#include "remap_kernel.h"

static struct {
	struct remap_request request;
	struct dev_pagemap *pgmap;
	void *returned;
	unsigned long nr_objects;	/* of kmalloc(), before the first call */
} world;

/* --- The boot ------------------------------------------------------------------ */

static void insert(struct resource *resource, const char *name, unsigned long pfn,
		   unsigned long nr_pages, unsigned long flags)
{
	*resource = (struct resource){
		.name = name,
		.start = PFN_PHYS(pfn),
		.end = PFN_PHYS(pfn + nr_pages) - 1,
		.flags = flags,
	};
	WARN_ON(insert_resource(&iomem_resource, resource));
}

/* As the firmware tells of memory, and as a driver asks for its device's. */
static void set_resources(const struct remap_request *request)
{
	static struct resource ram, device;

	iomem_resource.child = NULL;
	insert(&ram, "System RAM", NODE_PFN, request->node_pages,
	       IORESOURCE_SYSTEM_RAM | IORESOURCE_BUSY);
	insert(&device, "device", request->start_pfn, request->nr_pages,
	       IORESOURCE_MEM | IORESOURCE_BUSY);
	/* As it was linked: another boot has its node there. */
	memset(memblock.memory.regions, 0, sizeof(*memblock.memory.regions));
	memblock.memory.cnt = 0;
	memblock.memory.total_size = 0;
	WARN_ON(memblock_add_node(PFN_PHYS(NODE_PFN), PFN_PHYS(request->node_pages), 0,
				  MEMBLOCK_NONE));
}

/* As probe_page_size_mask() and mem_init(), of a CPU that has pages of 1 GiB. */
static void set_paging(const struct remap_request *request)
{
	memset(init_mm.pgd, 0, PAGE_SIZE);
	page_size_mask = BIT(PG_LEVEL_2M) | BIT(PG_LEVEL_1G);
	after_bootmem = 1;
	boot_cpu_data.x86 = 6;	/* at least, as any of 64 bits: its pages can be uncached */
	max_pfn = NODE_PFN + request->node_pages;
	max_low_pfn = max_pfn;
	max_pfn_mapped = max_pfn;
	max_low_pfn_mapped = max_pfn;
	highest_memmap_pfn = max_pfn - 1;
	high_memory = __va(PFN_PHYS(max_pfn) - 1) + 1;
}

/* Roots of the device's sections are memory of a node that is gone. */
static void forget_sections(const struct remap_request *request)
{
	unsigned long root = SECTION_NR_TO_ROOT(pfn_to_section_nr(request->start_pfn));
	unsigned long nr = pfn_to_section_nr(request->start_pfn + request->nr_pages - 1);

	for (; root <= SECTION_NR_TO_ROOT(nr); root++)
		mem_section[root] = NULL;
}

static void boot(const struct remap_request *request)
{
	host_place_map(0, (void *)REMAP_MAP_ADDRESS);
	host_place_contents(0, (void *)REMAP_RAM_ADDRESS);
	remap_begin_rcu();
	remap_reset_slab();
	host_set_node_cpus(0, request->nr_cpus);
	host_boot_node(request->node_pages);
	forget_sections(request);
	set_paging(request);
	set_resources(request);
}

/* --- The device ---------------------------------------------------------------- */

static vm_fault_t not_migrated(struct vm_fault *fault)
{
	WARN_ON(1);
	return VM_FAULT_SIGBUS;
}

#ifdef HAVE_PAGEMAP_FOLIO_FREE
static void not_freed(struct folio *folio)
{
	WARN_ON(1);
}
#else
static void not_freed(struct page *page)
{
	WARN_ON(1);
}
#endif

/* None of its pages is used. */
static const struct dev_pagemap_ops pagemap_ops = {
	.migrate_to_ram = not_migrated,
#ifdef HAVE_PAGEMAP_FOLIO_FREE
	.folio_free = not_freed,
#else
	.page_free = not_freed,
#endif
};

static void describe(const struct remap_request *request)
{
	unsigned long end_pfn = request->start_pfn + request->nr_pages;
	const struct dev_pagemap fresh = {
		.altmap = {
			.base_pfn = request->start_pfn,
			.end_pfn = end_pfn - 1,
			.reserve = request->reserved_pages,
			.free = request->skip_pages - request->reserved_pages,
		},
		.type = request->type,
		.flags = request->skip_pages ? PGMAP_ALTMAP_VALID : 0,
		.vmemmap_shift = request->order,
		.ops = &pagemap_ops,
		.owner = &world,
		.nr_range = 1,
		.range = {
			.start = PFN_PHYS(request->start_pfn),
			.end = PFN_PHYS(end_pfn) - 1,
		},
	};

	world.pgmap = request->pgmap;
	memcpy(world.pgmap, &fresh, sizeof(fresh));
}

static void map(void)
{
	world.returned = memremap_pages(world.pgmap, 0);
}

static void unmap(void)
{
	memunmap_pages(world.pgmap);
}

static void prepare(const struct remap_request *request)
{
	unsigned int i;

	world.request = *request;
	boot(request);
	world.nr_objects = remap_read_slab().nr_objects;
	for (i = 0; i < request->calls_before; i++) {
		describe(request);
		map();
		if (IS_ERR(world.returned))
			break;
		unmap();
		remap_end_rcu();
	}
	/* Roots of sections stay when the device goes. */
	if (i)
		world.nr_objects = remap_read_slab().nr_objects;
	describe(request);
}

/* --- What came of it ------------------------------------------------------------ */

/* Each CPU counts its own, until the pagemap is dead: lib/percpu-refcount.c. */
static unsigned long nr_refs(const struct percpu_ref *ref)
{
	unsigned long nr;
	int cpu;

	if (!ref->data)
		return 0;
	nr = atomic_long_read(&ref->data->count);
	if (!(ref->percpu_count_ptr & __PERCPU_REF_ATOMIC)) {
		nr -= 1UL << (BITS_PER_LONG - 1);	/* PERCPU_COUNT_BIAS */
		for_each_possible_cpu(cpu)
			nr += *per_cpu_ptr((unsigned long __percpu *)ref->percpu_count_ptr, cpu);
	}
	return nr;
}

static bool finds(unsigned long pfn)
{
#ifdef HAVE_GET_DEV_PAGEMAP_CACHED
	struct dev_pagemap *pgmap = get_dev_pagemap(pfn, NULL);
#else
	struct dev_pagemap *pgmap = get_dev_pagemap(pfn);
#endif

	if (pgmap)
		put_dev_pagemap(pgmap);
	return pgmap && pgmap == world.pgmap;
}

static void read_pagemap(struct remap_state *state)
{
	const struct remap_request *request = &world.request;
	unsigned long end_pfn = request->start_pfn + request->nr_pages;
	bool failed = IS_ERR(world.returned);

	state->error = failed ? -PTR_ERR(world.returned) : 0;
	state->address_off = failed ? 0 : (unsigned long)world.returned -
			     (unsigned long)__va(PFN_PHYS(request->start_pfn));
	state->refs = nr_refs(&world.pgmap->ref);
	state->nr_range = world.pgmap->nr_range;
	state->altmap_alloc = world.pgmap->altmap.alloc;
	state->found_first = finds(request->start_pfn);
	state->found_last = finds(end_pfn - 1);
	state->found_behind = finds(end_pfn);
}

static void read_spans(struct remap_state *state)
{
	struct pglist_data *pgdat = host_node(0);
	struct zone *zone = &pgdat->node_zones[ZONE_DEVICE];

	state->zone_start_pfn = zone->zone_start_pfn;
	state->zone_spanned = zone->spanned_pages;
	state->zone_present = zone->present_pages;
	state->zone_managed = zone_managed_pages(zone);
	state->zone_initialized = zone->initialized;
	state->node_start_pfn = pgdat->node_start_pfn;
	state->node_spanned = pgdat->node_spanned_pages;
	state->node_present = pgdat->node_present_pages;
	state->highest_pfn = highest_memmap_pfn;
}

static bool is_of_device(unsigned long pfn)
{
	return pfn - world.request.start_pfn < world.request.nr_pages;
}

static void read_section(unsigned long nr, struct remap_state *state)
{
	struct mem_section *section = __nr_to_section(nr);
	unsigned long flags, i;

	if (!section)
		return;
	flags = section->section_mem_map;
	state->sections_present += !!(flags & SECTION_MARKED_PRESENT);
	state->sections_mapped += !!(flags & SECTION_HAS_MEM_MAP);
	state->sections_tainted += !!(flags & SECTION_TAINT_ZONE_DEVICE);
	state->sections_others += !!(flags & (SECTION_IS_EARLY | SECTION_IS_ONLINE));
	if (!section->usage)
		return;
	state->sections_usage++;
	for (i = 0; i < SUBSECTIONS_PER_SECTION; i++) {
		if (!test_bit(i, section->usage->subsection_map))
			continue;
		state->subsections++;
		state->subsections_stray +=
			!is_of_device(section_nr_to_pfn(nr) + i * PAGES_PER_SUBSECTION);
	}
}

static unsigned long first_section(void)
{
	return pfn_to_section_nr(world.request.start_pfn);
}

static unsigned long last_section(void)
{
	return pfn_to_section_nr(world.request.start_pfn + world.request.nr_pages - 1);
}

static void read(struct remap_state *state)
{
	const struct remap_range range = {
		.start_pfn = world.request.start_pfn,
		.nr_pages = world.request.nr_pages,
		.altmap_pages = world.request.skip_pages,
		.node_pages = world.request.node_pages,
	};
	unsigned long nr;

	memset(state, 0, sizeof(*state));
	read_pagemap(state);
	read_spans(state);
	for (nr = first_section(); nr <= last_section(); nr++)
		read_section(nr, state);
	remap_read_tables(&range, state);
	state->objects = remap_read_slab().nr_objects - world.nr_objects;
}

static void read_usage(unsigned char *to)
{
	const size_t bytes = SECTION_BLOCKFLAGS_BITS / BITS_PER_BYTE;
	unsigned long nr;

	for (nr = first_section(); nr <= last_section(); nr++) {
		struct mem_section *section = __nr_to_section(nr);

		to += offsetof(struct mem_section_usage, pageblock_flags);
		if (section && section->usage)
			memcpy(to, section->usage->pageblock_flags, bytes);
		to += sizeof(struct mem_section_usage) + bytes -
		      offsetof(struct mem_section_usage, pageblock_flags);
	}
}

static const struct remap_ops ops = {
	.prepare = prepare,
	.map = map,
	.unmap = unmap,
	.settle = remap_end_rcu,
	.read = read,
	.read_usage = read_usage,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
#include "facts.h"
	{ "DEBUG_VM", IS_ENABLED(CONFIG_DEBUG_VM) },
	{ "PAGES_PER_SUBSECTION", PAGES_PER_SUBSECTION },
	{ "SECTIONS_PER_ROOT", SECTIONS_PER_ROOT },
	{ }
};
