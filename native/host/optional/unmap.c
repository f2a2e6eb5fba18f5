// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unmapping for experiments: what munmap() and exit do to the pages of one VMA
 * after looking it up and before unlinking it, by the kernel's own functions.
 * Page tables are not freed, because 7.3 frees them by call_rcu().
 */
#include <linux/mm.h>
#include <asm/tlb.h>
#include "internal.h"
#include "kernel.h"
#include "unmap.h"

/* The function by which both munmap() and exit unmap the pages of one VMA. */
#ifdef HAVE_UNMAP_PAGE_RANGE
#define zap unmap_page_range
#else
#define zap __zap_vma_range
void __zap_vma_range(struct mmu_gather *tlb, struct vm_area_struct *vma,
		     unsigned long start, unsigned long end,
		     struct zap_details *details);
#endif

void host_unmap(struct vm_area_struct *vma, bool whole_mm, struct zap_details *details,
		void (*vma_ends)(void))
{
	struct mmu_gather tlb;

	if (whole_mm)
		tlb_gather_mmu_fullmm(&tlb, vma->vm_mm);
	else
		tlb_gather_mmu(&tlb, vma->vm_mm);
	zap(&tlb, vma, vma->vm_start, vma->vm_end, details);
#ifdef HAVE_TLB_FREE_VMAS
	/* This is the first part of free_pgtables(), which follows if the VMA is removed. */
	if (details && details->zap_flags & ZAP_FLAG_UNMAP)
		tlb_free_vmas(&tlb);
#endif
	if (vma_ends)
		vma_ends();
	tlb_finish_mmu(&tlb);
}

void host_unmap_all(struct vm_area_struct *vma, bool whole_mm, void (*vma_ends)(void))
{
	struct zap_details all = {
		.zap_flags = ZAP_FLAG_DROP_MARKER | ZAP_FLAG_UNMAP,
#ifndef HAVE_SKIP_COWS
		.even_cows = true,
#endif
	};

	host_unmap(vma, whole_mm, &all, vma_ends);
}
