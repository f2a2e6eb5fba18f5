// SPDX-License-Identifier: GPL-2.0-only
/*
 * For experiments that unmap: what munmap() and exit do to the pages of one
 * VMA, by the kernel's own functions, between finding it and unlinking it.
 * Page tables stay: 7.3 frees them behind a grace period, by call_rcu().
 */
#include <linux/mm.h>
#include <asm/tlb.h>
#include "internal.h"
#include "kernel.h"
#include "unmap.h"

/* What unmaps pages of one VMA, all that munmap() and exit do below it. */
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
	/* As free_pgtables() begins, which comes next where the VMA goes. */
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
