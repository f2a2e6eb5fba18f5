// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the deferred-init experiment: all that a boot does to struct pages, from
 * free_area_init() to set_zone_contiguous().
 *
 * Nothing of a node is made beforehand but what firmware and sparse_init()
 * leave: memblock, sections, and a node that is online. Between the kernel's
 * functions stands no code of ours. What else page_alloc_init_late() does, as
 * buffer_init(), is not about struct pages.
 */
#include <linux/bitmap.h>
#include <linux/hugetlb.h>
#include <linux/memblock.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/string.h>
#include "internal.h"
#ifdef HAVE_MM_INIT_HEADER
#include "mm_init.h"
#endif
#include "kernel.h"
#include "deferred_init.h"
#include "deferred_kernel.h"

/* Of x86-64: frames below 16 MiB, below 4 GiB, and the rest. */
static unsigned long end_of_normal;

static void zone_limits(unsigned long *max_zone_pfn)
{
#ifdef CONFIG_ZONE_DMA
	max_zone_pfn[ZONE_DMA] = (16UL << 20) >> PAGE_SHIFT;
#endif
#ifdef CONFIG_ZONE_DMA32
	max_zone_pfn[ZONE_DMA32] = (4UL << 30) >> PAGE_SHIFT;
#endif
	max_zone_pfn[ZONE_NORMAL] = end_of_normal;
}

#ifdef HAVE_ARCH_ZONE_LIMITS_INIT
void __init arch_zone_limits_init(unsigned long *max_zone_pfns)
{
	HOST_STUB("custom");
	zone_limits(max_zone_pfns);
}

/* What it makes is there: see mark_sections(). */
void __init sparse_init(void)
{
	HOST_STUB("stubbed");
}

#ifdef CONFIG_HUGETLB_PAGE
/* The command line asks for no huge pages. */
void __init hugetlb_bootmem_alloc(void)
{
	HOST_STUB("stubbed");
}
#endif
#endif

static void set_nodes(unsigned int nr_nodes)
{
	static const enum node_states there[] = { N_POSSIBLE, N_ONLINE };
	static const enum node_states later[] = { N_NORMAL_MEMORY, N_MEMORY };
	unsigned int i, nid;

	for (i = 0; i < ARRAY_SIZE(there); i++) {
		nodes_clear(node_states[there[i]]);
		for (nid = 0; nid < nr_nodes; nid++)
			node_set(nid, node_states[there[i]]);
	}
	for (i = 0; i < ARRAY_SIZE(later); i++)
		nodes_clear(node_states[later[i]]);
}

/*
 * A machine boots once. defer_init() remembers the end of the zone that it was
 * asked about last, and how many pages of it were not deferred: so that it
 * forgets what the last sample has left, it is asked about another end.
 */
static void forget_last_boot(const struct deferred_span *node)
{
	reset_managed_pages_done = 0;
	host_node(0)->node_start_pfn = node->start_pfn;
	host_node(0)->node_spanned_pages = node->end_pfn - node->start_pfn;
	host_node(0)->first_deferred_pfn = ULONG_MAX;
#ifdef HAVE_MEMMAP_INIT_RANGE_ISOLATING
	memmap_init_range(1, 0, ZONE_NORMAL, node->start_pfn, ULONG_MAX,
			  MEMINIT_EARLY, NULL, MIGRATE_MOVABLE, false);
#else
	memmap_init_range(1, 0, ZONE_NORMAL, node->start_pfn, ULONG_MAX,
			  MEMINIT_EARLY, NULL, MIGRATE_MOVABLE);
#endif
}

/* As sparse_init() and, of kernels that have it there, what follows the zones. */
static void mark_sections(const struct deferred_span *node)
{
	unsigned long nr = pfn_to_section_nr(node->start_pfn);
	unsigned long end = pfn_to_section_nr(node->end_pfn - 1);

	for (; nr <= end; nr++) {
		struct mem_section *section = __nr_to_section(nr);

		section->section_mem_map |= SECTION_IS_ONLINE;
#ifdef HAVE_ARCH_ZONE_LIMITS_INIT
		bitmap_fill(section->usage->subsection_map, SUBSECTIONS_PER_SECTION);
#endif
	}
	__highest_present_section_nr = end;
}

void boot_prepare(const struct deferred_request *request)
{
	unsigned int nid;

	set_nodes(request->nr_nodes);
	forget_last_boot(&request->node[0]);
	for (nid = 0; nid < request->nr_nodes; nid++) {
		memset(host_node(nid), 0, sizeof(*host_node(nid)));
		mark_sections(&request->node[nid]);
		end_of_normal = request->node[nid].end_pfn;
	}
	/* As setup_arch(). */
	max_pfn = end_of_normal;
	max_low_pfn = end_of_normal;
	atomic_long_set(&_totalram_pages, 0);
}

void boot_run(unsigned int nr_nodes, void (*threads)(void))
{
	unsigned int nid;
#ifdef HAVE_ARCH_ZONE_LIMITS_INIT
	mm_core_init_early();
#else
	unsigned long max_zone_pfn[MAX_NR_ZONES] = { };

	zone_limits(max_zone_pfn);
	free_area_init(max_zone_pfn);
#endif
	memblock_free_all();
	threads();
	for (nid = 0; nid < nr_nodes; nid++)
		set_zone_contiguous(&host_node(nid)->node_zones[ZONE_NORMAL]);
}

static const char *wrong_zone(const struct zone *zone, const struct deferred_span *node)
{
	unsigned long nr_pages = node->end_pfn - node->start_pfn;

	if (zone->zone_start_pfn != node->start_pfn || zone->spanned_pages != nr_pages)
		return "the zone does not span its memory";
	if (zone->present_pages != nr_pages)
		return "not all of the zone's memory is present";
	if (!zone->initialized)
		return "the zone is not initialised";
	if (!zone->contiguous)
		return "the zone is not contiguous";
	return NULL;
}

static const char *wrong_node(const struct pglist_data *pgdat, const struct deferred_span *node)
{
	unsigned long nr_pages = node->end_pfn - node->start_pfn;
	enum zone_type type;

	if (pgdat->node_start_pfn != node->start_pfn || pgdat->node_spanned_pages != nr_pages ||
	    pgdat->node_present_pages != nr_pages)
		return "the node does not span its memory";
	if (!node_state(pgdat->node_id, N_MEMORY))
		return "the node has memory, and does not say so";
	for (type = 0; type < MAX_NR_ZONES; type++)
		if (type != ZONE_NORMAL && pgdat->node_zones[type].present_pages)
			return "a zone has memory that has none";
	return wrong_zone(&pgdat->node_zones[ZONE_NORMAL], node);
}

/* What the specification says of nodes and zones; pages are compared by the runner. */
const char *boot_broken(const struct deferred_span *nodes, unsigned int nr_nodes)
{
	unsigned long nr_managed = 0;
	unsigned int nid;

	for (nid = 0; nid < nr_nodes; nid++) {
		const char *wrong = wrong_node(host_node(nid), &nodes[nid]);

		if (wrong)
			return wrong;
		nr_managed += zone_managed_pages(&host_node(nid)->node_zones[ZONE_NORMAL]);
	}
	if (totalram_pages() != nr_managed)
		return "totalram_pages is not what all zones manage";
	return NULL;
}
