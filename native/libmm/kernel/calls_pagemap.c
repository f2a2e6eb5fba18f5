// SPDX-License-Identifier: GPL-2.0-only
/*
 * Check what /proc/PID/pagemap and clear_refs report and change for each page.
 * calls.def lists these functions. Source:
 * Documentation/admin-guide/mm/pagemap.rst and soft-dirty.rst.
 */
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/rmap.h>
#include <linux/userfaultfd_k.h>
#include <uapi/linux/fs.h>
#include "../fs/proc/internal.h"
#include "calls.h"
#include "entry.h"
#include "hosted.h"
#include "proc.h"
#include "steps.h"
#include "trees.h"

#define NUMBER GENMASK_ULL(54, 0)
#define SOFT_DIRTY BIT_ULL(55)
#define EXCLUSIVE BIT_ULL(56)
#define PROTECTED BIT_ULL(57)
#define GUARD BIT_ULL(58)
#define OF_FILE BIT_ULL(61)
#define SWAPPED BIT_ULL(62)
#define PRESENT BIT_ULL(63)

#define SWAP_TYPE_BITS 5
#define AT_ONCE 512L
#define CLEARS_SOFT_DIRTY 4

/**
 * struct bits - the expected bits of a page in a file
 * @set: Bits that must be set.
 * @any: Bits that the specification leaves open.
 */
struct bits {
	u64 set;
	u64 any;
};

static bool is_mapped_once(const struct entry *entry)
{
	struct page *page = pfn_to_page(entry->number);
	struct folio *folio = page_folio(page);
	int nr = folio_test_large(folio) ? folio_entire_mapcount(folio) : 0;

	if (!folio_test_hugetlb(folio))
		nr += atomic_read(&page->_mapcount) + 1;
	return nr == 1;
}

/* Pages in a shared PMD table are mapped once, but belong to several mappings. */
static bool is_in_shared_table(struct vm_area_struct *vma, unsigned long address)
{
	return is_vm_hugetlb_page(vma) &&
	       ptdesc_pmd_pts_count(virt_to_ptdesc(translate(vma->vm_mm, address).at));
}

/* walk_page_range() skips VM_PFNMAP VMAs. */
static struct entry entry_of(struct vm_area_struct *vma, unsigned long address)
{
	return vma->vm_flags & VM_PFNMAP ? (struct entry){ } : entry_at(vma->vm_mm, address);
}

/* --- pagemap ----------------------------------------------------------- */

static struct bits expected(struct vm_area_struct *vma, unsigned long address)
{
	struct entry entry = entry_of(vma, address);
	struct folio *folio = folio_at(&entry);
	struct bits bits = {
		.set = entry.number | (entry.is_protected ? PROTECTED : 0) |
		       (vma->vm_flags & VM_SOFTDIRTY ? SOFT_DIRTY : 0),
	};

	if (entry.is_soft_dirty && !is_vm_hugetlb_page(vma))
		bits.set |= SOFT_DIRTY;
	switch (entry.state) {
	case IS_NONE:
		break;
	case IS_PRESENT:
		bits.set |= PRESENT;
		if (folio && !folio_test_anon(folio))
			bits.set |= OF_FILE;
		if (folio && is_mapped_once(&entry) && !is_in_shared_table(vma, address))
			bits.set |= EXCLUSIVE;
		if (!folio && entry.is_huge)	/* the huge zero folio may count as file */
			bits.any |= OF_FILE | EXCLUSIVE;
		break;
	case IS_SWAPPED:
		bits.set = (bits.set & ~NUMBER) | SWAPPED | entry.number << SWAP_TYPE_BITS;
		break;
	case IS_MARKER:
		bits.any |= NUMBER | SWAPPED | GUARD;
		bits.set |= entry.is_guard ? GUARD : 0;
		bits.any &= entry.is_guard ? ~GUARD : U64_MAX;
		break;
	default:
		bits.any |= NUMBER | OF_FILE;
		bits.set |= is_vm_hugetlb_page(vma) ? 0 : SWAPPED;
	}
	return bits;
}

static void compare_entry(unsigned long address, u64 is)
{
	struct vm_area_struct *vma = vma_lookup(current->mm, address);
	struct bits bits = vma ? expected(vma, address) : (struct bits){ };

	if ((is ^ bits.set) & ~bits.any)
		wrong("/proc/PID/pagemap says %#llx of %#lx, where %#llx is right",
		      is, address, bits.set);
}

long call_pagemap(long start, long bytes, long unused, long unused2)
{
	u64 entries[AT_ONCE / 8];
	long nr = bytes >> PAGE_SHIFT, done = 0, some, i;

	for (; done < nr; done += some / sizeof(u64)) {
		unsigned long first = start + (done << PAGE_SHIFT);

		some = read_proc_file(&proc_pagemap_operations, entries,
				      min(nr - done, (long)ARRAY_SIZE(entries)) * sizeof(u64),
				      (first >> PAGE_SHIFT) * sizeof(u64));
		if (some <= 0)
			return some;
		for (i = 0; i < some / sizeof(u64); i++)
			compare_entry(first + (i << PAGE_SHIFT), entries[i]);
	}
	return done;
}

/* --- PAGEMAP_SCAN ------------------------------------------------------ */

#define CATEGORIES (PAGE_IS_WPALLOWED | PAGE_IS_WRITTEN | PAGE_IS_FILE | PAGE_IS_PRESENT |	\
		    PAGE_IS_SWAPPED | PAGE_IS_PFNZERO | PAGE_IS_HUGE | PAGE_IS_SOFT_DIRTY)

static struct bits categories_of(struct vm_area_struct *vma, unsigned long address)
{
	struct entry entry = entry_of(vma, address);
	struct folio *folio = folio_at(&entry);
	struct bits bits = {
		.set = vma->vm_flags & VM_SOFTDIRTY ? PAGE_IS_SOFT_DIRTY : 0,
		.any = PAGE_IS_WPALLOWED,
	};

	if (entry.state == IS_NONE || entry.state == IS_MARKER) {
		bits.any |= PAGE_IS_WRITTEN | PAGE_IS_SWAPPED | PAGE_IS_HUGE | PAGE_IS_SOFT_DIRTY;
		return bits;
	}
	bits.set |= entry.state == IS_PRESENT ? PAGE_IS_PRESENT : PAGE_IS_SWAPPED;
	bits.set |= entry.is_soft_dirty ? PAGE_IS_SOFT_DIRTY : 0;
	bits.set |= entry.is_huge ? PAGE_IS_HUGE : 0;
	bits.set |= entry.is_protected ? 0 : PAGE_IS_WRITTEN;
	bits.any |= userfaultfd_wp(vma) ? 0 : PAGE_IS_WRITTEN;
	if (folio && !folio_test_anon(folio))
		bits.set |= PAGE_IS_FILE;
	if (entry.state == IS_PRESENT && !folio && !entry.is_by_frame)
		bits.set |= PAGE_IS_PFNZERO;
	if (entry.state == IS_BROKEN || is_vm_hugetlb_page(vma))
		bits.any |= PAGE_IS_FILE;
	return bits;
}

static const struct page_region *region_of(const struct page_region *regions, long nr,
					   unsigned long address)
{
	long i;

	for (i = 0; i < nr; i++)
		if (address >= regions[i].start && address < regions[i].end)
			return &regions[i];
	return NULL;
}

static void compare_region(const struct pm_scan_arg *its, unsigned long address,
			   const struct page_region *region)
{
	struct vm_area_struct *vma = vma_lookup(current->mm, address);
	struct bits bits = vma ? categories_of(vma, address) : (struct bits){ };
	u64 wanted = its->category_anyof_mask ?: ~0ULL;
	bool is_wanted = vma && (!its->category_anyof_mask || bits.set & ~bits.any & wanted);

	if (!region && is_wanted)
		wrong("PAGEMAP_SCAN leaves out %#lx, which is %#llx", address, bits.set);
	if (region && !vma)
		wrong("PAGEMAP_SCAN reports %#lx, where nothing is mapped", address);
	if (region && vma && (region->categories ^ bits.set) & ~bits.any)
		wrong("PAGEMAP_SCAN says %#llx of %#lx, where %#llx is right",
		      region->categories, address, bits.set);
}

/* PM_SCAN_WP_MATCHING must protect the pages that it reports as written. */
static void check_protected(unsigned long address, const struct page_region *region)
{
	struct entry entry = entry_at(current->mm, address);

	if (region && region->categories & PAGE_IS_WRITTEN && !entry.is_protected)
		wrong("PAGEMAP_SCAN reports %#lx as written, and leaves it unprotected", address);
}

long call_pagemap_scan(long start, long bytes, long categories, long flags)
{
	struct page_region regions[48];
	struct pm_scan_arg its = {
		.size = sizeof(its), .flags = flags, .start = start, .end = start + bytes,
		.vec = (unsigned long)regions, .vec_len = ARRAY_SIZE(regions),
		.category_anyof_mask = categories, .return_mask = CATEGORIES,
	};
	long nr = control_proc_file(&proc_pagemap_operations, PAGEMAP_SCAN, &its);
	unsigned long address;

	if (nr < 0)
		return nr;
	for (address = start; address < its.walk_end; address += PAGE_SIZE) {
		const struct page_region *region = region_of(regions, nr, address);

		if (flags & PM_SCAN_WP_MATCHING)
			check_protected(address, region);
		else
			compare_region(&its, address, region);
	}
	return nr;
}

/* --- clear_refs -------------------------------------------------------- */

/*
 * Expect writes to a page to set soft-dirty from now on. clear_refs does not
 * change entries of pinned pages (pte_is_pinned()) or of device private pages.
 */
static void follow_page(struct process *process, struct vm_area_struct *vma, unsigned long page)
{
	struct entry entry = entry_at(vma->vm_mm, address_of_page(page));
	struct folio *folio = folio_at(&entry);

	process->pages[page].is_written = false;
	process->pages[page].is_followed =
		entry.state != IS_PRIVATE &&
		!(entry.is_writable && folio && folio_maybe_dma_pinned(folio));
}

long call_clear_refs(long start, long bytes, long what, long unused)
{
	char word[16];
	long bytes_of_word = scnprintf(word, sizeof(word), "%ld\n", what);
	long result = write_proc_file(&proc_clear_refs_operations, word, bytes_of_word);

	if (result > 0 && what == CLEARS_SOFT_DIRTY)
		look_at_pages(current_process(), follow_page);
	return min(result, 0L);
}
