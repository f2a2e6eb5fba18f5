// SPDX-License-Identifier: GPL-2.0-only
/* Check that the KSM counters of all address spaces add up to the global ones. */
#include <linux/ksm.h>
#include <linux/mm.h>
#include "census.h"
#include "hosted.h"
#include "steps.h"

struct sums {
	unsigned long merging;
	unsigned long items;
	long zero_pages;
};

static void add(struct sums *sums, const struct mm_struct *mm)
{
	sums->merging += mm->ksm_merging_pages;
	sums->items += mm->ksm_rmap_items;
	sums->zero_pages += mm->ksm_zero_pages.counter;
}

/* KSM may still have a slot for an mm that has exited, with its counters. */
static bool is_known(const struct mm_struct *mm)
{
	struct mm_slot *slot;

	list_for_each_entry(slot, &ksm_mm_head.slot.mm_node, mm_node)
		if (slot->mm == mm)
			return true;
	return false;
}

void check_ksm(void)
{
	struct sums sums = { };
	struct mm_slot *slot;
	long number;

	list_for_each_entry(slot, &ksm_mm_head.slot.mm_node, mm_node)
		add(&sums, slot->mm);
	for (number = 0; number < MOST_PROCESSES; number++) {
		struct mm_struct *mm = process_of(number) ? mm_of(process_of(number)) : NULL;

		if (mm && !is_known(mm))
			add(&sums, mm);
	}
	if (ksm_pages_shared + ksm_pages_sharing != sums.merging)
		wrong("pages_shared and pages_sharing of KSM are %lu, and processes merge %lu",
		      ksm_pages_shared + ksm_pages_sharing, sums.merging);
	if (ksm_rmap_items != sums.items)
		wrong("KSM has %lu rmap_items, and processes say that they have %lu",
		      ksm_rmap_items, sums.items);
	if (!may_ksm_zero_pages_vary() && atomic_long_read(&ksm_zero_pages) != sums.zero_pages)
		wrong("ksm_zero_pages is %ld, and those of processes are %ld",
		      atomic_long_read(&ksm_zero_pages), sums.zero_pages);
}
