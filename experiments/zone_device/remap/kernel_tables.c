// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel's own page tables hold of a device: which frames its memory
 * map has, and where its contents are in the linear map. And whether each
 * frame of the node is free, or is used by something that is known.
 */
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/pgtable.h>
#include <linux/string.h>
#include "internal.h"
#include "kernel.h"
#include "node.h"
#include "remap_kernel.h"

/* Of any entry, whatever its size; what else it has is where it leads. */
#define WANTED (_PAGE_PRESENT | _PAGE_RW | _PAGE_NX)
#define UNWANTED _PAGE_USER
#define UNCACHED (_PAGE_PWT | _PAGE_PCD)

#define PMD_PAGES (PMD_SIZE / PAGE_SIZE)
#define PUD_PAGES (PUD_SIZE / PAGE_SIZE)

/* How often each of some frames is mapped. */
struct frames {
	unsigned long start_pfn, nr;
	unsigned short *nr_mapped;
};

struct walk {
	const struct remap_range *range;
	struct remap_state *state;
	struct frames node, device;
	unsigned long last_pfn;
};

static struct frames all_frames(unsigned long start_pfn, unsigned long nr)
{
	return (struct frames){
		start_pfn, nr, nr ? host_alloc(nr * sizeof(unsigned short)) : NULL,
	};
}

static void note(struct remap_state *state, unsigned long place, unsigned long entry)
{
	state->layout = (state->layout ^ place ^ entry) * 0x9e3779b97f4a7c15UL;
	state->layout ^= state->layout >> 29;
}

static bool is_sound(unsigned long entry)
{
	return (entry & WANTED) == WANTED && !(entry & UNWANTED);
}

/* A frame of the map; each is the node's, or the device's own. */
static void count_frame(struct walk *walk, unsigned long pfn)
{
	struct frames *frames = pfn - walk->node.start_pfn < walk->node.nr ?
				&walk->node : &walk->device;

	if (pfn - frames->start_pfn >= frames->nr) {
		walk->state->map_wrong++;
		return;
	}
	if (!frames->nr_mapped[pfn - frames->start_pfn]++) {
		walk->state->map_frames++;
		walk->state->map_on_device += frames == &walk->device;
	}
}

static void read_huge(struct walk *walk, unsigned long at, unsigned long entry)
{
	unsigned long pfn = pmd_pfn(__pmd(entry)), i;

	note(walk->state, at, entry);
	walk->state->map_huge++;
	walk->state->map_wrong += !is_sound(entry);
	for (i = 0; i < PMD_PAGES; i++)
		count_frame(walk, pfn + i);
}

static void read_small(struct walk *walk, unsigned long at, pte_t *table)
{
	unsigned long entry = pte_val(table[pte_index(at)]);
	unsigned long pfn = pte_pfn(__pte(entry));

	note(walk->state, at, entry);
	if (!entry) {
		walk->state->map_lacking++;
		return;
	}
	walk->state->map_small++;
	walk->state->map_shared += pfn == walk->last_pfn;
	walk->state->map_wrong += !is_sound(entry);
	walk->last_pfn = pfn;
	count_frame(walk, pfn);
}

static pud_t *pud_of(unsigned long at)
{
	pgd_t *pgd = pgd_offset_k(at);
	p4d_t *p4d = p4d_offset(pgd, at);

	return pgd_none(*pgd) || p4d_none(*p4d) ? NULL : pud_offset(p4d, at);
}

static void read_map(struct walk *walk)
{
	unsigned long at = (unsigned long)pfn_to_page(walk->range->start_pfn);
	unsigned long end = at + walk->range->nr_pages * sizeof(struct page), next;

	for (; at < end; at = next) {
		pud_t *pud = pud_of(at);
		pmd_t *pmd = pud && !pud_none(*pud) ? pmd_offset(pud, at) : NULL;

		next = pmd_addr_end(at, end);
		if (!pmd || pmd_none(*pmd))
			walk->state->map_lacking += (next - at) / PAGE_SIZE;
		else if (pmd_leaf(*pmd))
			read_huge(walk, at, pmd_val(*pmd));
		else
			for (; at < next; at += PAGE_SIZE)
				read_small(walk, at, (pte_t *)pmd_page_vaddr(*pmd));
	}
}

/* Whether an entry of the linear map of so many pages is one, and where it must lead. */
static void read_linear_entry(struct walk *walk, unsigned long at, unsigned long entry,
			      unsigned long pfn)
{
	note(walk->state, at, entry);
	walk->state->linear_uncached += !!(entry & UNCACHED);
	walk->state->linear_wrong += !is_sound(entry) || pfn != PHYS_PFN(__pa(at));
}

static unsigned long read_linear_at(struct walk *walk, unsigned long at)
{
	pud_t *pud = pud_of(at);
	pmd_t *pmd;
	pte_t *pte;

	if (!pud || pud_none(*pud))
		return ALIGN_DOWN(at, PUD_SIZE) + PUD_SIZE;
	if (pud_leaf(*pud)) {
		walk->state->linear_1g++;
		read_linear_entry(walk, ALIGN_DOWN(at, PUD_SIZE), pud_val(*pud), pud_pfn(*pud));
		return ALIGN_DOWN(at, PUD_SIZE) + PUD_SIZE;
	}
	pmd = pmd_offset(pud, at);
	if (pmd_leaf(*pmd)) {
		walk->state->linear_2m++;
		read_linear_entry(walk, ALIGN_DOWN(at, PMD_SIZE), pmd_val(*pmd), pmd_pfn(*pmd));
	}
	if (pmd_none(*pmd) || pmd_leaf(*pmd))
		return ALIGN_DOWN(at, PMD_SIZE) + PMD_SIZE;
	pte = (pte_t *)pmd_page_vaddr(*pmd) + pte_index(at);
	if (!pte_none(*pte)) {
		walk->state->linear_4k++;
		read_linear_entry(walk, at, pte_val(*pte), pte_pfn(*pte));
	}
	return at + PAGE_SIZE;
}

static void read_linear(struct walk *walk)
{
	unsigned long at = (unsigned long)__va(PFN_PHYS(walk->range->start_pfn));
	unsigned long end = at + walk->range->nr_pages * PAGE_SIZE;

	while (at < end)
		at = read_linear_at(walk, at);
}

/* The tables below an entry of the top one. */
static unsigned long nr_tables_below(unsigned int index)
{
	unsigned long nr = 1;
	pud_t *puds;
	int i, j;

	if (pgd_none(init_mm.pgd[index]) || p4d_none(*p4d_offset(&init_mm.pgd[index], 0)))
		return 0;
	puds = p4d_pgtable(*p4d_offset(&init_mm.pgd[index], 0));
	for (i = 0; i < PTRS_PER_PUD; i++) {
		pmd_t *pmds;

		if (pud_none(puds[i]) || pud_leaf(puds[i]))
			continue;
		pmds = pud_pgtable(puds[i]);
		nr++;
		for (j = 0; j < PTRS_PER_PMD; j++)
			nr += !pmd_none(pmds[j]) && !pmd_leaf(pmds[j]);
	}
	return nr;
}

static void count_tables(struct walk *walk)
{
	unsigned long first = (unsigned long)pfn_to_page(walk->range->start_pfn);
	unsigned long last = first + walk->range->nr_pages * sizeof(struct page) - 1;
	unsigned int i;

	for (i = 0; i < PTRS_PER_PGD; i++) {
		bool of_map = i >= pgd_index(first) && i <= pgd_index(last);

		*(of_map ? &walk->state->map_tables : &walk->state->linear_tables) +=
			nr_tables_below(i);
	}
}

/* Frames of the node that hold the map are counted as often as they are mapped. */
static void check_counts(struct walk *walk)
{
	unsigned long i;

	for (i = 0; i < walk->node.nr; i++) {
		struct page *page = pfn_to_page(walk->node.start_pfn + i);
		unsigned int nr = walk->node.nr_mapped[i];

		/* Of a block of 2 MiB the first frame has the count of all. */
		if (nr && (PageBuddy(page) || (page_count(page) != nr && page_count(page))))
			walk->state->map_wrong++;
	}
}

static unsigned long nr_free(void)
{
	struct zone *zone = host_zone();
	unsigned long nr = 0;
	unsigned int i;

	for (i = 0; i < NR_PAGE_ORDERS; i++)
		nr += zone->free_area[i].nr_free << i;
	for_each_possible_cpu(i)
		nr += per_cpu_ptr(zone->per_cpu_pageset, i)->count;
	return nr;
}

void remap_read_tables(const struct remap_range *range, struct remap_state *state)
{
	struct walk walk = {
		.range = range,
		.state = state,
		.node = all_frames(NODE_PFN, range->node_pages),
		.device = all_frames(range->start_pfn, range->altmap_pages),
	};

	read_map(&walk);
	read_linear(&walk);
	count_tables(&walk);
	check_counts(&walk);
	state->frames_lost = range->node_pages - nr_free() - remap_read_slab().nr_pages -
			     state->map_tables - state->linear_tables -
			     (state->map_frames - state->map_on_device);
	host_free(walk.node.nr_mapped);
	host_free(walk.device.nr_mapped);
}
