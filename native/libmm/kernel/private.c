// SPDX-License-Identifier: GPL-2.0-only
/*
 * A driver that migrates pages, either to other pages or to device private
 * memory, which no CPU can access. A CPU fault on a device private page migrates
 * it back. Source: Documentation/mm/hmm.rst. calls.def lists these functions.
 */
#include <linux/bitmap.h>
#include <linux/highmem.h>
#include <linux/memory_hotplug.h>
#include <linux/memremap.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include "calls.h"
#include "entry.h"
#include "hosted.h"
#include "private.h"
#include "steps.h"
#include "trees.h"

static DECLARE_BITMAP(taken, NR_PRIVATE);
static char (*held)[PAGE_SIZE];	/* contents of the device's memory */

/* The device's memory is the section after all RAM. */
unsigned long first_private(void)
{
	return ALIGN(LIBMM_FIRST_PFN + computer.nr_frames, PAGES_PER_SECTION);
}

bool is_taken_private(unsigned long pfn)
{
	return test_bit(pfn - first_private(), taken);
}

const u64 *private_words(unsigned long pfn)
{
	return (const u64 *)held[pfn - first_private()];
}

static vm_fault_t bring_back(struct vm_fault *fault);
static const struct dev_pagemap_ops operations;

static struct dev_pagemap memory = {
	.type = MEMORY_DEVICE_PRIVATE, .ops = &operations, .nr_range = 1,
};

#ifdef HAVE_PAGE_FREE_OF_PAGEMAP
static void give_back(struct page *page)
{
	__clear_bit(page_to_pfn(page) - first_private(), taken);
}

static const struct dev_pagemap_ops operations = {
	.page_free = give_back, .migrate_to_ram = bring_back,
};

static void init_private(struct page *page)
{
	zone_device_page_init(page);
}
#else
static void give_back(struct folio *folio)
{
	__clear_bit(folio_pfn(folio) - first_private(), taken);
}

static const struct dev_pagemap_ops operations = {
	.folio_free = give_back, .migrate_to_ram = bring_back,
};

static void init_private(struct page *page)
{
	zone_device_page_init(page, &memory, 0);
}
#endif

/* Add the device's memory. The first migration to the device does this. */
static long open_private(void)
{
	void *error;

	if (memory.owner)
		return 0;
	memory.owner = &memory;
	memory.range.start = PFN_PHYS(first_private());
	memory.range.end = memory.range.start + PFN_PHYS(NR_PRIVATE) - 1;
	held = held ?: host_alloc(NR_PRIVATE * PAGE_SIZE);
	error = memremap_pages(&memory, 0);
	if (IS_ERR(error))
		memory.owner = NULL;
	return PTR_ERR_OR_ZERO(error);
}

void close_private(void)
{
	if (!memory.owner)
		return;
	if (bitmap_empty(taken, NR_PRIVATE))
		memunmap_pages(&memory);
	else
		wrong("%u pages of device private memory are still taken when all has ended",
		      bitmap_weight(taken, NR_PRIVATE));
	memory.owner = NULL;
}

/* arch/x86/mm/init_64.c, without the page tables of the direct map. */
int add_pages(int node, unsigned long pfn, unsigned long nr, struct mhp_params *how)
{
	HOST_STUB("duplicated");
	return __add_pages(node, pfn, nr, how);
}

/* --- the driver's migrations -------------------------------------------- */

static struct page *new_private(struct page *from)
{
	unsigned long number = find_first_zero_bit(taken, NR_PRIVATE);
	struct page *page;

	if (number == NR_PRIVATE)
		return NULL;
	__set_bit(number, taken);
	if (from)
		memcpy(held[number], page_address(from), PAGE_SIZE);
	else
		memset(held[number], 0, PAGE_SIZE);
	page = pfn_to_page(first_private() + number);
	init_private(page);
	return page;
}

static struct page *new_page(struct page *from)
{
	struct page *page = alloc_page(GFP_HIGHUSER_MOVABLE);

	if (!page)
		return NULL;
	lock_page(page);
	if (!from)
		clear_highpage(page);
	else if (is_device_private_page(from))
		memcpy(page_address(page), private_words(page_to_pfn(from)), PAGE_SIZE);
	else
		copy_highpage(page, from);
	return page;
}

/* Migrate what migrate_vma_setup() has isolated (its->cpages) to pages from @make. */
static long migrate(struct migrate_vma *its, struct page *(*make)(struct page *from))
{
	long error = migrate_vma_setup(its);
	unsigned long i;

	if (error)
		return error;
	for (i = 0; i < its->npages; i++) {
		struct page *to = its->src[i] & MIGRATE_PFN_MIGRATE ?
				  make(migrate_pfn_to_page(its->src[i])) : NULL;

		its->dst[i] = to ? migrate_pfn(page_to_pfn(to)) : 0;
	}
	migrate_vma_pages(its);
	migrate_vma_finalize(its);
	return 0;
}

static vm_fault_t bring_back(struct vm_fault *fault)
{
	unsigned long from = 0, to = 0;
	struct migrate_vma its = {
		.vma = fault->vma, .src = &from, .dst = &to, .pgmap_owner = &memory,
		.start = PAGE_ALIGN_DOWN(fault->address), .end = PAGE_ALIGN(fault->address + 1),
		.flags = MIGRATE_VMA_SELECT_DEVICE_PRIVATE, .fault_page = fault->page,
	};

	return migrate(&its, new_page) ? VM_FAULT_SIGBUS : 0;
}

/*
 * Migration fills entries of the zero page as if they were missing, which ends
 * their userfaultfd protection. It splits the huge zero folio to such entries.
 */
static void see_zeros_filled(long start, long bytes)
{
	long at;

	for (at = start; at < start + bytes; at += PAGE_SIZE) {
		pte_t pte = __pte(translate(current->mm, at).entry);

		if (pte_present(pte) && (!is_ram(pte_pfn(pte)) ||
					 folio_test_large(page_folio(pfn_to_page(pte_pfn(pte))))))
			end_uffd_wp(current_process(), (at - LIBMM_USER_ADDRESS) >> PAGE_SHIFT, 1);
	}
}

static long migrate_range(long start, long bytes, struct page *(*make)(struct page *from))
{
	static unsigned long from[MOST_PAGES], to[MOST_PAGES];
	struct migrate_vma its = {
		.src = from, .dst = to, .start = start, .flags = MIGRATE_VMA_SELECT_SYSTEM,
		.pgmap_owner = &memory,
	};
	long error = -EFAULT;

	see_zeros_filled(start, bytes);
	mmap_read_lock(current->mm);
	its.vma = vma_lookup(current->mm, start);
	/* Only anonymous VMAs, as Documentation/mm/hmm.rst requires. */
	if (its.vma && vma_is_anonymous(its.vma)) {
		its.end = min_t(unsigned long, its.vma->vm_end,
				start + min(bytes, MOST_PAGES << PAGE_SHIFT));
		error = migrate(&its, make);
	}
	mmap_read_unlock(current->mm);
	return error ?: its.cpages;
}

long call_migrate_vma(long start, long bytes, long unused, long unused2)
{
	return migrate_range(start, bytes, new_page);
}

/* A page may come back with a writable entry, so a later write need not set soft-dirty. */
static void end_following(unsigned long start, unsigned long bytes)
{
	unsigned long page = (start - LIBMM_USER_ADDRESS) >> PAGE_SHIFT, i;

	for (i = page; i < page + (bytes >> PAGE_SHIFT); i++) {
		struct user_page *its = &current_process()->pages[i];

		if (entry_at(current->mm, address_of_page(i)).state != IS_PRIVATE)
			continue;
		its->is_followed = false;
		its->is_written = false;
	}
}

long call_to_device(long start, long bytes, long unused, long unused2)
{
	long result = open_private() ?: migrate_range(start, bytes, new_private);

	if (result > 0)
		end_following(start, bytes);
	return result;
}
