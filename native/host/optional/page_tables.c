// SPDX-License-Identifier: GPL-2.0-only
/*
 * What hosted kernels with page tables need: the variables those are read
 * with, the frames they lie in, and counters of an address space. An
 * experiment has it if its file `objects` says ream/page_tables.o.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/percpu_counter.h>
#include <linux/pgtable.h>
#include <asm/processor.h>
#include "kernel.h"
#include "page_tables.h"

/* Set by glue.c: where the contents of frames lie. arch/x86/kernel/head64.c */
unsigned long page_offset_base;

/* Read with every address, used for those of the kernel's image alone. */
unsigned long phys_base;

/* Four levels of page tables: LA57 is not among the allowed features. */
unsigned int pgdir_shift = 39;
unsigned int ptrs_per_p4d = 1;

/* Zero would silently strip the present bit. arch/x86/mm/init.c */
pteval_t __supported_pte_mask = ~0;
pteval_t __default_kernel_pte_mask = ~0;

/*
 * The host sets which of them have CPUs. mm/page_alloc.c
 * What is weak here is that one's, where it is linked: then tables alone come
 * from here, which ask for alloc_pages_noprof() of mm/mempolicy.c.
 */
nodemask_t node_states[NR_NODE_STATES] __weak;

/* What the kernel starts with on up to 16 CPUs. lib/percpu_counter.c */
int percpu_counter_batch = 32;

static unsigned long next_table_pfn;

void host_reset_tables(unsigned long pfn)
{
	next_table_pfn = pfn;
}

/*
 * Page tables and pages of the gather come one frame after the other, and
 * are all taken back before the next sample; a free list that the CPU has
 * in its cache is what the kernel's own allocator gives a fork of this size.
 */
static struct page *take_table(gfp_t flags)
{
	struct page *page = pfn_to_page(next_table_pfn++);

	memset(page, 0, sizeof(*page));
	init_page_count(page);
	atomic_set(&page->_mapcount, -1);
	if (flags & __GFP_ZERO)
		clear_page(page_address(page));
	return page;
}

struct page *alloc_pages_noprof(gfp_t flags, unsigned int order)
{
	HOST_STUB("custom");
	return order ? NULL : take_table(flags);
}

struct page *__weak __alloc_pages_noprof(gfp_t flags, unsigned int order, int nid,
				  nodemask_t *nodes)
{
	HOST_STUB("custom");
	return order ? NULL : take_table(flags);
}

unsigned long __weak get_free_pages_noprof(gfp_t flags, unsigned int order)
{
	HOST_STUB("custom");
	return order ? 0 : (unsigned long)page_address(take_table(flags));
}

unsigned long __weak get_zeroed_page_noprof(gfp_t flags)
{
	HOST_STUB("custom");
	return (unsigned long)page_address(take_table(flags | __GFP_ZERO));
}

/*
 * As the kernel's, but without turning interrupts off: a program has none.
 * The count is exact at once; nothing here reads the per-CPU parts.
 */
void percpu_counter_add_batch(struct percpu_counter *counter, s64 amount,
			      s32 batch)
{
	counter->count += amount;
}
