/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel that has ream/unmap.o: what unmaps the pages of one VMA. */
#ifndef REAM_UNMAP_H
#define REAM_UNMAP_H

#include <linux/mm.h>

struct zap_details;

/**
 * host_unmap() - unmap all pages of a VMA, with a gather of its own
 * @vma: It.
 * @whole_mm: As exit_mmap() does; else as munmap() does.
 * @details: What unmap_page_range() is told.
 * @vma_ends: Called as soon as all entries are gone; may be NULL.
 */
void host_unmap(struct vm_area_struct *vma, bool whole_mm, struct zap_details *details,
		void (*vma_ends)(void));

/* As unmap_vmas() has it where the VMA goes, too. */
void host_unmap_all(struct vm_area_struct *vma, bool whole_mm, void (*vma_ends)(void));

#endif
