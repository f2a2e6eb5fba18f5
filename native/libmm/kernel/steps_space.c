// SPDX-License-Identifier: GPL-2.0-only
/* Steps that change or access an address space, mostly by system calls of the same name. */
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include "hosted.h"
#include "steps.h"

SYSTEM_CALL(mmap);
SYSTEM_CALL(munmap);
SYSTEM_CALL(mprotect);
SYSTEM_CALL(mremap);
SYSTEM_CALL(madvise);
SYSTEM_CALL(mlock2);
SYSTEM_CALL(munlock);
SYSTEM_CALL(mlockall);
SYSTEM_CALL(munlockall);
SYSTEM_CALL(msync);
SYSTEM_CALL(mincore);

/* MADV_GUARD_INSTALL and MADV_GUARD_REMOVE, which 6.12 lacks. */
#define GUARD_INSTALL 102
#define GUARD_REMOVE 103

bool tables_may_be_shared;

static bool is_within(long page, long nr)
{
	return page >= 0 && nr > 0 && page < MOST_USER_PAGES && nr <= MOST_USER_PAGES - page;
}

static bool has_huge_pages(const struct vm_area_struct *vma)
{
	return vma && is_vm_hugetlb_page(vma);
}

static long file_kind(long flags, long file, long nr, struct user_page *page)
{
	page->kind = ANONYMOUS;
	if (file >= 0) {
		page->kind = flags & MAP_SHARED ? SHARED_FILE : PRIVATE_FILE;
		page->file = file;
	} else if (flags & MAP_SHARED) {
		/* Parent and children share the pages, so they are modelled as a file. */
		int number = new_shared_memory(nr);

		if (number < 0)
			return number;
		page->kind = SHARED_FILE;
		page->file = number;
	}
	return 0;
}

long step_mmap(long number, long page, long nr, long protection, long flags, long file, long offset)
{
	struct user_page first = {
		.protection = protection, .index = offset, .is_followed = FOLLOWS_NEW_PAGES,
	};
	struct process *process = current_process();
	long error, result;

	if (!is_within(page, nr) || (file >= 0 && (!file_of(file) || !file_of(file)->file)))
		return -EINVAL;
	/* The kernel rounds hugetlb mappings up to huge pages. */
	if (flags & MAP_HUGETLB || (file >= 0 && is_file_hugepages(file_of(file)->file)))
		nr = ALIGN(nr, HPAGE_PMD_NR);
	tables_may_be_shared |= nr >= PTRS_PER_PMD * PTRS_PER_PTE;
	first.is_droppable = (flags & MAP_TYPE) == MAP_DROPPABLE;
	result = call(__x64_sys_mmap, address_of_page(page), nr << PAGE_SHIFT, protection,
		      flags | MAP_FIXED, file >= 0 ? file_of(file)->fd : -1, offset << PAGE_SHIFT);
	if (result != address_of_page(page)) {
		promises_may_be_lost = true;
		see_what_is_mapped(process, page, nr);
		return result;
	}
	/* A writable hugetlbfs mapping extends its file. */
	if (file >= 0 && is_file_hugepages(file_of(file)->file) && protection & PROT_WRITE)
		file_of(file)->nr_pages = clamp(offset + nr, (long)file_of(file)->nr_pages,
						(long)MOST_FILE_PAGES);
	if (file >= 0 && is_zero_device(file))
		file = -1;
	error = file_kind(flags, file, nr, &first);
	see_mapping(process, page, nr, first);
	return error;
}

long step_munmap(long number, long page, long nr)
{
	long error;

	if (!is_within(page, nr))
		return -EINVAL;
	error = call(__x64_sys_munmap, address_of_page(page), nr << PAGE_SHIFT, 0, 0, 0, 0);
	if (error)
		see_what_is_mapped(current_process(), page, nr);
	else
		see_unmapping(current_process(), page, nr);
	return error;
}

/* mprotect() populates locked pages that become writable. */
static void end_uffd_wp_if_locked(struct process *process, long page, long nr)
{
	VMA_ITERATOR(vmi, mm_of(process), address_of_page(page));
	struct vm_area_struct *vma;

	for_each_vma_range(vmi, vma, address_of_page(page + nr))
		if (vma->vm_flags & VM_LOCKED)
			end_uffd_wp_by_populating(process, page, nr);
}

long step_mprotect(long number, long page, long nr, long protection)
{
	long error;

	if (!is_within(page, nr))
		return -EINVAL;
	if (protection & PROT_WRITE)
		end_uffd_wp_if_locked(current_process(), page, nr);
	error = call(__x64_sys_mprotect, address_of_page(page), nr << PAGE_SHIFT, protection,
		     0, 0, 0);
	if (error)
		see_what_is_mapped(current_process(), page, nr);
	else
		see_protection(current_process(), page, nr, protection);
	return error;
}

/* A failed mremap() of several VMAs may have moved the first ones. */
static void see_moved_page(struct process *process, long page, long to, bool leaves_mapping)
{
	struct mm_struct *mm = mm_of(process);
	bool was_empty = process->pages[to].kind == NO_MEMORY;

	if (!vma_lookup(mm, address_of_page(to)))
		return;
	if (leaves_mapping ? was_empty : !vma_lookup(mm, address_of_page(page)))
		see_move(process, page, to, 1, leaves_mapping);
}

long step_mremap(long number, long page, long nr, long new_nr, long flags, long new_page)
{
	struct process *process = current_process();
	unsigned long to = address_of_page(new_page);
	bool moves = flags & MREMAP_FIXED, leaves_mapping = flags & MREMAP_DONTUNMAP, stays;
	struct user_page grown;
	long result;

	if (!is_within(page, nr) || !is_within(page, new_nr) || !is_within(new_page, new_nr) ||
	    (!moves && flags & MREMAP_MAYMOVE))
		return -EINVAL;
	if (has_huge_pages(vma_lookup(current->mm, address_of_page(page)))) {
		nr = ALIGN(nr, HPAGE_PMD_NR);
		new_nr = ALIGN(new_nr, HPAGE_PMD_NR);
	}
	/* Unmap the target first, so that it shows later how far a failed call came. */
	if (leaves_mapping && (new_page >= page + nr || page >= new_page + new_nr))
		step_munmap(number, new_page, new_nr);
	result = call(__x64_sys_mremap, address_of_page(page), nr << PAGE_SHIFT,
		      new_nr << PAGE_SHIFT, flags, to, 0);
	if (result < 0) {
		for (long i = 0; moves && i < min(nr, new_nr); i++)
			see_moved_page(process, page + i, new_page + i, leaves_mapping);
		see_what_is_mapped(process, page, max(nr, new_nr));
		if (moves)
			see_what_is_mapped(process, new_page, new_nr);
		return result;
	}
	if (!moves)
		to = address_of_page(page);
	/* If memory is too short to unmap the source, it remains as an empty mapping. */
	stays = moves && !leaves_mapping && vma_lookup(current->mm, address_of_page(page));
	promises_may_be_lost |= stays;
	if (result != to)
		wrong("mremap() returned %#lx, where %#lx is right", result, to);
	if (moves)
		see_move(process, page, new_page, min(nr, new_nr), leaves_mapping || stays);
	if (moves && nr > new_nr)
		see_unmapping(process, page + new_nr, nr - new_nr);
	if (stays)
		see_what_is_mapped(process, page, nr);
	page = moves ? new_page : page;
	if (new_nr < nr && !moves)
		see_unmapping(process, page + new_nr, nr - new_nr);
	if (new_nr > nr) {
		grown = process->pages[page];
		grown.index += nr;
		forget_page(&grown);
		see_mapping(process, page + nr, new_nr - nr, grown);
	}
	return 0;
}

/* Only huge pages that lie entirely within the range are discarded. */
static bool goes_with(long first, long nr, long page)
{
	long huge = ALIGN_DOWN(page, HPAGE_PMD_NR);

	return !has_huge_pages(vma_lookup(current->mm, address_of_page(page))) ||
	       (huge >= first && huge + HPAGE_PMD_NR <= first + nr);
}

static bool has_frame(long page)
{
	unsigned long entry = translate(current->mm, address_of_page(page)).entry;

	return entry & _PAGE_PRESENT && is_ram((entry & PTE_PFN_MASK) >> PAGE_SHIFT);
}

/* If memory is short, a partly removed large folio in swap may remain unchanged. */
static bool may_stay(struct process *process, long page, unsigned long start, unsigned long end)
{
	struct vm_area_struct *vma = vma_lookup(mm_of(process), address_of_page(page));

	if (!vma || !vma->vm_file)
		return false;
	return is_in_swap_with_others(vma->vm_file->f_mapping,
				      linear_page_index(vma, address_of_page(page)),
				      linear_page_index(vma, max(start, vma->vm_start)),
				      linear_page_index(vma, min(end, vma->vm_end)));
}

long step_madvise(long number, long page, long nr, long advice)
{
	struct process *process = current_process();
	long error, i;

	if (!is_within(page, nr))
		return -EINVAL;
	/* The zero page is part of the kernel's image, which is not RAM here. */
	if ((advice == MADV_HWPOISON || advice == MADV_SOFT_OFFLINE) && !has_frame(page))
		return -EFAULT;
	if (advice == MADV_HWPOISON)
		see_broken_page();
	/* KSM entries lack the soft-dirty bit, and so do entries made when KSM unmerges. */
	for (i = page; i < page + nr && advice == MADV_UNMERGEABLE; i++)
		process->pages[i].is_written = false;
	if (advice == MADV_POPULATE_WRITE)
		end_uffd_wp_by_write(process, page, nr);
	/* KSM may merge protected pages, and guard markers replace the entries. */
	if (advice == MADV_MERGEABLE || advice >= GUARD_INSTALL)
		end_uffd_wp(process, page, nr);
	/* A call that fails may have discarded some pages. */
	if (advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED || advice == MADV_FREE ||
	    advice == GUARD_INSTALL)
		see_discard(process, page, nr, false);
	for (i = page; i < page + nr && advice == GUARD_INSTALL; i++)
		process->pages[i].may_be_guarded = true;
	error = call(__x64_sys_madvise, address_of_page(page), nr << PAGE_SHIFT, advice, 0, 0, 0);
	if (!error && (advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED))
		for (i = page; i < page + nr; i++)
			if (goes_with(page, nr, i))
				see_discard(process, i, 1, true);
	for (i = page; i < page + nr && advice == GUARD_REMOVE && !error; i++)
		process->pages[i].may_be_guarded = false;
	if (advice == MADV_REMOVE)
		end_uffd_wp_by_removal(process, page, nr);
	/* MADV_REMOVE continues after unmapped holes, and then returns -ENOMEM. */
	if (advice == MADV_REMOVE && (!error || error == -ENOMEM))
		for (i = page; i < page + nr; i++)
			if (process->pages[i].kind == SHARED_FILE &&
			    !may_stay(process, i, address_of_page(page),
				      address_of_page(page + nr)))
				see_value(process, i, 0);
	return error;
}

long step_mlock(long number, long page, long nr, long flags)
{
	if (!is_within(page, nr))
		return -EINVAL;
	if (!(flags & MLOCK_ONFAULT))
		end_uffd_wp_by_populating(current_process(), page, nr);
	return call(__x64_sys_mlock2, address_of_page(page), nr << PAGE_SHIFT, flags, 0, 0, 0);
}

long step_munlock(long number, long page, long nr)
{
	if (!is_within(page, nr))
		return -EINVAL;
	return call(__x64_sys_munlock, address_of_page(page), nr << PAGE_SHIFT, 0, 0, 0, 0);
}

long step_mlockall(long number, long flags)
{
	if (flags & MCL_CURRENT)
		end_uffd_wp_by_populating(current_process(), 0, MOST_USER_PAGES);
	return call(__x64_sys_mlockall, flags, 0, 0, 0, 0, 0);
}

long step_munlockall(long number)
{
	return call(__x64_sys_munlockall, 0, 0, 0, 0, 0, 0);
}

long step_msync(long number, long page, long nr, long flags)
{
	if (!is_within(page, nr))
		return -EINVAL;
	return call(__x64_sys_msync, address_of_page(page), nr << PAGE_SHIFT, flags, 0, 0, 0);
}

/* Whether mincore(2) must report a page without an entry. @is_known: false if unspecified. */
static bool is_cached(unsigned long address, bool *is_known)
{
	struct vm_area_struct *vma = vma_lookup(current->mm, address);
	void *entry;

	/* Without a PMD table, mincore() may look hugetlb pages up in the page cache. */
	*is_known = !is_vm_hugetlb_page(vma) || translate(current->mm, address).at;
	if (!vma->vm_file || is_vm_hugetlb_page(vma))
		return false;
	entry = xa_load(&vma->vm_file->f_mapping->i_pages, linear_page_index(vma, address));
	*is_known = !xa_is_value(entry);
	return *is_known && entry && folio_test_uptodate(entry);
}

long step_mincore(long number, long page, long nr)
{
	static unsigned char residency[MOST_USER_PAGES];
	long nr_resident = 0, result, i;

	if (!is_within(page, nr))
		return -EINVAL;
	result = call(__x64_sys_mincore, address_of_page(page), nr << PAGE_SHIFT, (long)residency,
		      0, 0, 0);
	for (i = 0; !result && i < nr; i++) {
		unsigned long address = address_of_page(page + i);
		pte_t entry = __pte(translate(current->mm, address).entry);
		bool is_there = residency[i] & 1, is_known = pte_present(entry), has_to = is_known;

		if (pte_none(entry))
			has_to = is_cached(address, &is_known);
		/* VM_PFNMAP: some kernels look at the entries, others at the page cache. */
		if (vma_lookup(current->mm, address)->vm_flags & VM_PFNMAP)
			is_known = false;
		nr_resident += is_there;
		if (is_known && is_there != has_to)
			wrong("mincore() says that page %#lx is %sin memory", page + i,
			      is_there ? "" : "not ");
	}
	return result ?: nr_resident;
}

/* --- accesses ---------------------------------------------------------- */

long step_write(long number, long page, long nr, long value)
{
	long i;

	if (!is_within(page, nr))
		return -EINVAL;
	for (i = 0; i < nr; i++)
		if (!store_page(current_process(), page + i,
				value ?: value_of_step(i)))
			break;
	return i;
}

long step_read(long number, long page, long nr)
{
	long i;

	if (!is_within(page, nr))
		return -EINVAL;
	for (i = 0; i < nr; i++)
		if (!load_page(current_process(), page + i))
			break;
	return i;
}
