// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the mremap experiment: functions that are deliberately not the
 * kernel's, and how each differs. See native/host/kernel/kernel.h.
 */
#include <linux/mm.h>
#include <asm/tlbflush.h>
#include "kernel.h"
#include "mremap_kernel.h"

static struct {
	unsigned long nr;
	unsigned long start, end;
} flushes;

void mremap_reset_flushes(void)
{
	flushes.nr = 0;
	flushes.start = ULONG_MAX;
	flushes.end = 0;
}

void mremap_read_flushes(struct mremap_result *result)
{
	result->nr_flushes = flushes.nr;
	result->flush_start = flushes.start;
	result->flush_end = flushes.end;
}

/* No other CPU has this address space loaded: it is noted what had to go. */
void flush_tlb_mm_range(struct mm_struct *mm, unsigned long start,
			unsigned long end, unsigned int stride_shift,
			bool freed_tables)
{
	HOST_STUB("custom");
	flushes.nr++;
	flushes.start = min(flushes.start, start);
	flushes.end = max(flushes.end, end);
}
