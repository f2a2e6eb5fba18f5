// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the compact experiment: functions that are deliberately not the
 * kernel's, and how each differs. See native/host/kernel/kernel.h for the
 * kinds.
 */
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <asm/page.h>
#include <asm/tlbflush.h>
#include "kernel.h"
#include "compact_kernel.h"
#include "offload.h"

static unsigned long nr_flushes;

/* --- Translations: no other CPU has the address space loaded -------------- */

void arch_tlbbatch_flush(struct arch_tlbflush_unmap_batch *batch)
{
	HOST_STUB("custom");
	nr_flushes++;
	cpumask_clear(&batch->cpumask);
}

void flush_tlb_mm_range(struct mm_struct *mm, unsigned long start,
			unsigned long end, unsigned int stride_shift,
			bool freed_tables)
{
	HOST_STUB("custom");
	nr_flushes++;
}

unsigned long compact_nr_flushes(void)
{
	return nr_flushes;
}

/* --- Copies: those that a model has put off are done where the CPU has to know - */

static void touches(const void *to, const void *from)
{
	if (unlikely(compact_looks))
		compact_look();
	offload_touches(PHYS_PFN(__pa(from)));
	offload_touches(PHYS_PFN(__pa(to)));
}

unsigned long __wrap_copy_mc_to_kernel(void *to, const void *from, unsigned int bytes)
{
	HOST_STUB("custom");
	touches(to, from);
	return __real_copy_mc_to_kernel(to, from, bytes);
}

unsigned long __wrap___copy_mc_page_streaming(void *to, const void *from)
{
	HOST_STUB("custom");
	touches(to, from);
	return __real___copy_mc_page_streaming(to, from);
}

/* --- Frames that are no node's: page tables, and pages that channels copy for a trial - */

void __wrap___folio_put(struct folio *folio)
{
	HOST_STUB("custom");
	if (folio_pfn(folio) >= NODE_PFN)
		__real___folio_put(folio);
}
