// SPDX-License-Identifier: GPL-2.0-only
/*
 * Soft-dirty: what was written since clear_refs was must be reported, and only
 * clear_refs makes an entry clean again. Source:
 * Documentation/admin-guide/mm/soft-dirty.rst.
 */
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include "census.h"
#include "entry.h"
#include "hosted.h"
#include "steps.h"

/*
 * Pages of files may lose their entries, and with them the bit. KSM makes new
 * entries: mm/ksm.c, replace_page().
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

	if (is_vm_hugetlb_page(vma))	/* clear_refs leaves these alone */
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
