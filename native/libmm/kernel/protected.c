// SPDX-License-Identifier: GPL-2.0-only
/*
 * A page that userfaultfd write-protects stays protected until it is written,
 * discarded, moved or unregistered, whatever the kernel does with it on its own.
 * Source: Documentation/admin-guide/mm/userfaultfd.rst. Where that document
 * promises nothing, the protection is no longer expected.
 */
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/userfaultfd_k.h>
#include "entry.h"
#include "hosted.h"
#include "steps.h"

void see_uffd_wp(struct process *process, unsigned long page, unsigned long nr)
{
	unsigned long i;

	for (i = page; i < page + nr && i < MOST_USER_PAGES; i++) {
		struct vm_area_struct *vma = vma_lookup(mm_of(process), address_of_page(i));
		struct user_page *its = &process->pages[i];

		/*
		 * Reclaim may drop MADV_FREE and droppable pages at any time. KSM replaces a page
		 * that it merges, and nothing promises that the new one is protected.
		 * Without UFFD_FEATURE_WP_UNPOPULATED a page without an entry is not protected.
		 */
		if (process->protects_present &&
		    pte_none(__pte(translate(mm_of(process), address_of_page(i)).entry)))
			continue;
		if (vma && its->kind != NO_MEMORY && !its->may_be_gone && !its->is_droppable &&
		    !(vma->vm_flags & VM_MERGEABLE))
			its->is_uffd_wp = true;
	}
}

void end_uffd_wp(struct process *process, unsigned long page, unsigned long nr)
{
	unsigned long end = min(page + nr, MOST_USER_PAGES), i;

	for (i = page; i < end; i++)
		process->pages[i].is_uffd_wp = false;
}

/* A write fault resolves a whole hugetlb page, but only a single page otherwise. */
void end_uffd_wp_by_write(struct process *process, unsigned long page, unsigned long nr)
{
	unsigned long end = min(page + nr, MOST_USER_PAGES), i;

	for (i = page; i < end; i++) {
		struct vm_area_struct *vma = vma_lookup(mm_of(process), address_of_page(i));

		if (vma && is_vm_hugetlb_page(vma))
			end_uffd_wp(process, ALIGN_DOWN(i, HPAGE_PMD_NR), HPAGE_PMD_NR);
		else
			end_uffd_wp(process, i, 1);
	}
}

/* Private pages are populated by writes, shared ones by reads. */
void end_uffd_wp_by_populating(struct process *process, unsigned long page, unsigned long nr)
{
	unsigned long end = min(page + nr, MOST_USER_PAGES), i;

	for (i = page; i < end; i++)
		if (process->pages[i].kind != SHARED_FILE)
			end_uffd_wp(process, i, 1);
}

void end_uffd_wp_of_file(unsigned int file, unsigned long index, unsigned long nr)
{
	long number;

	for (number = 0; number < MOST_PROCESSES; number++) {
		struct process *process = process_of(number);
		struct vm_area_struct *vma;

		if (!process || !mm_of(process))
			continue;
		VMA_ITERATOR(vmi, mm_of(process), 0);
		for_each_vma(vmi, vma) {
			unsigned long page = (vma->vm_start - LIBMM_USER_ADDRESS) >> PAGE_SHIFT;
			unsigned long end = min(page + vma_pages(vma), MOST_USER_PAGES);

			for (; page < end; page++) {
				struct user_page *its = &process->pages[page];

				if ((its->kind != SHARED_FILE && its->kind != PRIVATE_FILE) ||
				    its->file != file || its->index < index ||
				    its->index - index >= nr)
					continue;
				its->is_uffd_wp = false;
				/* Hugetlb files also lose poison markers and private copies. */
				its->may_be_gone |= its->is_poisoned || is_vm_hugetlb_page(vma);
			}
		}
	}
}

/* MADV_REMOVE removes pages of files from all processes. */
void end_uffd_wp_by_removal(struct process *process, unsigned long page, unsigned long nr)
{
	unsigned long end = page + nr, next;

	for (; page < end; page = next) {
		struct user_page *first = &process->pages[page], *other = first + 1;

		for (next = page + 1; next < end; next++, other++)
			if (other->kind != first->kind || other->file != first->file ||
			    other->index - first->index != next - page)
				break;
		if (first->kind == SHARED_FILE)
			end_uffd_wp_of_file(first->file, first->index, next - page);
	}
}

/* Whether a write would be reported to userfaultfd, or raise a signal. */
static bool keeps_uffd_wp(const struct entry *entry)
{
	return entry->is_protected || entry->state == IS_MARKER || entry->state == IS_BROKEN;
}

void check_uffd_wp(struct process *process, unsigned long page)
{
	struct translation found;
	struct entry entry;

	if (!process->pages[page].is_uffd_wp)
		return;
	entry = entry_at(mm_of(process), address_of_page(page));
	if (keeps_uffd_wp(&entry))
		return;
	process->pages[page].is_uffd_wp = false;
	found = translate(mm_of(process), address_of_page(page));
	wrong("%#lx was protected by userfaultfd, and may be written: %#lx",
	      address_of_page(page), found.at ? *found.at : 0);
}
