// SPDX-License-Identifier: GPL-2.0-only
/*
 * For experiments whose address space is not loaded on any other CPU: TLB flushes
 * are only recorded.
 */
#include <linux/mm.h>
#include <asm/tlbflush.h>
#include "kernel.h"
#include "tlb_flushes.h"

struct tlb_flushes host_flushes;

void host_reset_flushes(void)
{
	host_flushes = (struct tlb_flushes){ .start = ULONG_MAX };
#ifdef CONFIG_ARM64
	host_note_invalidations(&host_flushes);
#endif
}

#ifndef CONFIG_ARM64
/* Record the range that is flushed. */
void flush_tlb_mm_range(struct mm_struct *mm, unsigned long start,
			unsigned long end, unsigned int stride_shift,
			bool freed_tables)
{
	HOST_STUB("custom");
	host_flushes.nr++;
	host_flushes.start = min(host_flushes.start, start);
	host_flushes.end = max(host_flushes.end, end);
}
#endif
