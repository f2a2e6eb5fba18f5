// SPDX-License-Identifier: GPL-2.0-only
/*
 * A page that was written since the last write to clear_refs must be soft-dirty,
 * and only clear_refs may clear the bit again. Source:
 * Documentation/admin-guide/mm/soft-dirty.rst.
 */
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include "census.h"
#include "entry.h"
#include "hosted.h"
#include "steps.h"

/*
 * A page of a file may lose its entry, and the soft-dirty bit with it.
 * replace_page() in mm/ksm.c installs a new entry without the bit.
 */
static bool is_its_own(struct vm_area_struct *vma, const struct user_page *page,
		       const struct entry *entry)
{
	if (page->kind != ANONYMOUS && !(page->kind == PRIVATE_FILE && page->is_own))
		return false;
	return !page->may_be_gone && !(vma->vm_flags & VM_MERGEABLE) &&
	       (entry->state == IS_PRESENT || entry->state == IS_SWAPPED ||
		entry->state == IS_MOVING);
}

static void check_page(struct process *process, struct vm_area_struct *vma, unsigned long number)
{
	struct user_page *page = &process->pages[number];
	struct entry entry;

	if (is_vm_hugetlb_page(vma))	/* clear_refs skips hugetlb VMAs */
		return;
	entry = entry_at(vma->vm_mm, address_of_page(number));
	if (!is_its_own(vma, page, &entry)) {
		page->is_written = false;
		return;
	}
	if (entry.is_soft_dirty) {
		page->is_written = true;
	} else if (vma->vm_flags & VM_SOFTDIRTY) {
		see_soft_dirty_mapping(page);
	} else if (page->is_written) {
		wrong("process %d has written page %#lx since clear_refs, which is not soft-dirty",
		      process->number, number);
		page->is_written = false;
	}
}

void check_soft_dirty(void)
{
	long number;

	for (number = 0; number < MOST_PROCESSES; number++)
		if (process_of(number) && mm_of(process_of(number)))
			look_at_pages(process_of(number), check_page);
}
