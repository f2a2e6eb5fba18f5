/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel that has ream/unmap.o: unmapping the pages of one VMA. */
#ifndef REAM_UNMAP_H
#define REAM_UNMAP_H

#include <linux/mm.h>

struct zap_details;

/**
 * host_unmap() - unmap all pages of a VMA, with a gather of its own
 * @vma: The VMA.
 * @whole_mm: Unmap as exit_mmap() does. Otherwise unmap as munmap() does.
 * @details: Passed to unmap_page_range().
 * @vma_ends: Called as soon as all entries are gone; may be NULL.
 */
void host_unmap(struct vm_area_struct *vma, bool whole_mm, struct zap_details *details,
		void (*vma_ends)(void));

/* Unmap as unmap_vmas() does when the VMA is removed, too. */
void host_unmap_all(struct vm_area_struct *vma, bool whole_mm, void (*vma_ends)(void));

#endif
