// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shadow state: for each page of each process and file, the word that user space
 * must find at its beginning and end. It follows mmap(2), madvise(2), fork(2) and
 * mremap(2), and uses no code of the kernel.
 */
#include <linux/hugetlb.h>
#include <linux/ksm.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/userfaultfd_k.h>
#include <linux/vmstat.h>
#include "census.h"
#include "hosted.h"
#include "private.h"
#include "steps.h"
#include "trees.h"

#define LAST_WORD (PAGE_SIZE - sizeof(u64))

static struct user_page *page_of(struct process *process, unsigned long page)
{
	return &process->pages[page];
}

/* The expected value of a page, or NULL if it is beyond the end of its file. */
static u64 *value_of(struct user_page *page)
{
	static u64 zero;
	struct user_file *file;

	if (page->kind == ANONYMOUS || page->is_own)
		return &page->value;
	if (page->kind == NO_MEMORY)
		return &zero;
	file = file_of(page->file);
	return page->index < file->nr_pages ? &file->values[page->index] : NULL;
}

/* --- changes by system calls ------------------------------------------- */

void see_mapping(struct process *process, unsigned long page, unsigned long nr,
		 struct user_page first)
{
	unsigned long i;

	for (i = 0; i < nr; i++, first.index++)
		*page_of(process, page + i) = first;
}

void see_unmapping(struct process *process, unsigned long page, unsigned long nr)
{
	memset(page_of(process, page), 0, nr * sizeof(struct user_page));
}

void see_protection(struct process *process, unsigned long page, unsigned long nr, int protection)
{
	unsigned long i;

	for (i = 0; i < nr; i++)
		page_of(process, page + i)->protection = protection;
}

void see_move(struct process *process, unsigned long from, unsigned long to, unsigned long nr,
	      bool leaves_mapping)
{
	unsigned long i;

	/* Holes do not move: the target keeps its mapping there. */
	for (i = 0; i < nr; i++)
		if (page_of(process, from + i)->kind != NO_MEMORY)
			*page_of(process, to + i) = *page_of(process, from + i);
	/* Without UFFD_FEATURE_EVENT_REMAP a move ends the registration. */
	end_uffd_wp(process, to, nr);
	if (!leaves_mapping) {
		see_unmapping(process, from, nr);
		return;
	}
	for (i = 0; i < nr; i++)	/* MREMAP_DONTUNMAP */
		forget_page(page_of(process, from + i));
}

void see_discard(struct process *process, unsigned long first, unsigned long nr, bool is_sure)
{
	unsigned long i;

	for (i = 0; i < nr; i++) {
		struct user_page *page = page_of(process, first + i);

		if (page->kind != SHARED_FILE)
			page->is_uffd_wp = false;
		if (page->kind != ANONYMOUS && !(page->kind == PRIVATE_FILE && page->is_own)) {
			/* Poison is a marker in the page table, so it goes with the entry. */
			page->may_be_gone |= page->is_poisoned;
			if (is_sure && page->is_poisoned) {
				page->is_poisoned = false;
				page->may_be_gone = page->is_droppable;
			}
			continue;
		}
		page->may_be_gone = true;
		if (is_sure)
			forget_page(page);
	}
}

void see_fork(struct process *parent, struct process *child)
{
	VMA_ITERATOR(vmi, mm_of(child), 0);
	struct vm_area_struct *vma;

	child->was_wiped = parent->was_wiped;
	for_each_vma(vmi, vma) {
		unsigned long page = (vma->vm_start - LIBMM_USER_ADDRESS) >> PAGE_SHIFT, i;

		child->was_wiped |= !!(vma->vm_flags & VM_WIPEONFORK);
		if (page >= MOST_USER_PAGES)
			continue;
		memcpy(page_of(child, page), page_of(parent, page),
		       vma_pages(vma) * sizeof(struct user_page));
		/* Without UFFD_FEATURE_EVENT_FORK the child is not registered. */
		end_uffd_wp(child, page, vma_pages(vma));
		for (i = 0; i < vma_pages(vma); i++) {
			struct user_page *its = page_of(child, page + i);

			if (vma->vm_flags & VM_WIPEONFORK)
				forget_page(its);
			/* fork() may skip entries of shared memory, poison markers included. */
			its->may_be_gone |= its->is_poisoned && vma->vm_flags & VM_SHARED;
		}
	}
}

void see_truncation(unsigned int number, unsigned long nr_pages)
{
	struct user_file *file = file_of(number);
	unsigned long i;
	long other;

	for (i = nr_pages; i < file->nr_pages; i++)
		file->values[i] = 0;
	end_uffd_wp_of_file(number, nr_pages, MOST_USER_PAGES);
	file->nr_pages = nr_pages;
	/* Truncation also drops private copies of the pages that it cuts off. */
	for (other = 0; other < MOST_PROCESSES; other++)
		for (i = 0; process_of(other) && i < MOST_USER_PAGES; i++) {
			struct user_page *page = page_of(process_of(other), i);

			if (page->kind != PRIVATE_FILE || page->file != number ||
			    page->index < nr_pages)
				continue;
			page->is_own = false;
			page->is_written = false;
		}
}

void see_end(struct process *process)
{
	VMA_ITERATOR(vmi, mm_of(process), 0);
	struct vm_area_struct *vma;

	for_each_vma(vmi, vma) {
		unsigned long page = (vma->vm_start - LIBMM_USER_ADDRESS) >> PAGE_SHIFT;

		if (page < MOST_USER_PAGES)
			see_unmapping(process, page, vma_pages(vma));
	}
}

void see_value(struct process *process, unsigned long number, u64 value)
{
	struct user_page *page = page_of(process, number);

	page->is_own |= page->kind == PRIVATE_FILE;
	page->may_be_gone = page->is_droppable;
	page->is_written = false;
	if (value_of(page))
		*value_of(page) = value;
}

static int protection_of(const struct vm_area_struct *vma)
{
	return (vma->vm_flags & VM_READ ? PROT_READ : 0) |
	       (vma->vm_flags & VM_WRITE ? PROT_WRITE : 0) |
	       (vma->vm_flags & VM_EXEC ? PROT_EXEC : 0);
}

void see_what_is_mapped(struct process *process, unsigned long page, unsigned long nr)
{
	unsigned long i;

	end_uffd_wp(process, page, nr);
	for (i = page; i < page + nr && i < MOST_USER_PAGES; i++) {
		struct vm_area_struct *vma = vma_lookup(mm_of(process), address_of_page(i));

		if (!vma)
			see_unmapping(process, i, 1);
		else
			page_of(process, i)->protection = protection_of(vma);
	}
}

/* --- accesses ---------------------------------------------------------- */

/*
 * It is unspecified whether a private page follows its file until it is written:
 * mlock(), populating and pins copy it earlier. Return: whether this is such a copy.
 */
static bool is_early_copy(struct user_page *page, struct mm_struct *mm, unsigned long address,
			  u64 value)
{
	unsigned long entry = translate(mm, address).entry;
	unsigned long pfn = (entry & PTE_PFN_MASK) >> PAGE_SHIFT;

	if (page->kind != PRIVATE_FILE || page->is_own || !(entry & _PAGE_PRESENT))
		return false;
	/* KSM may have replaced the copy by the zero page. */
	if (!is_ksm_zero_pte(__pte(entry)) &&
	    !(is_ram(pfn) && folio_test_anon(page_folio(pfn_to_page(pfn)))))
		return false;
	page->is_own = true;
	page->value = value;
	return true;
}

/* The last huge page of a file may extend beyond its end. A PMD maps the zeros there, too. */
static bool is_behind_huge_end(struct user_page *page)
{
	return page->kind && !value_of(page) && file_of(page->file)->may_be_huge;
}

/* Some page is hwpoisoned or unreadable, so the data of a file may be lost. */
static bool has_broken_pages;

void see_broken_page(void)
{
	has_broken_pages = true;
}

static void check_protected(struct process *process, unsigned long number)
{
	if (!has_broken_pages)
		check_uffd_wp(process, number);
}

static void compare(struct process *process, unsigned long number, u64 first, u64 last)
{
	struct user_page *page = page_of(process, number);
	unsigned long address = address_of_page(number);
	u64 *value = value_of(page);

	if (has_broken_pages && page->kind != ANONYMOUS && first == last)
		return;
	if (page->may_be_gone && first == last) {
		struct user_page without = *page;
		u64 *other;

		without.is_own = false;
		without.value = 0;
		other = value_of(&without);
		if (other && first == *other)
			return;
		if (is_early_copy(&without, mm_of(process), address, first)) {
			*page = without;
			return;
		}
	}
	if (value ? first == *value && last == *value :
		    is_behind_huge_end(page) && !first && !last)
		return;
	if (first == last && is_early_copy(page, mm_of(process), address, first))
		return;
	if (value)
		wrong("process %d reads %#llx and %#llx in page %#lx, where %#llx was written",
		      process->number, first, last, number, *value);
	else
		wrong("process %d reads %#llx in page %#lx, which is beyond the end of its file",
		      process->number, first, number);
}

static int signal_expected(struct user_page *page, int protection)
{
	if (!page->kind || !(page->protection & protection))
		return SIGSEGV;
	return value_of(page) && !page->is_poisoned ? 0 : SIGBUS;
}

#define FEW_FREE_SHARE 64	/* of all frames: fewer, and an access may get no page */

/*
 * Whether an access may fault for ever. Memory may be short, or one large folio may exceed the
 * dirty limit. The writer is then throttled until the flusher has cleaned the folio, and faults
 * again on the entry that the flusher has write-protected.
 */
bool may_fault_for_ever(void)
{
	unsigned long background, dirty;

	global_dirty_limits(&background, &dirty);
	return fails_for_ever() ||	/* the folios of some files have a minimum order */
	       (background + dirty) / 2 < HPAGE_PMD_NR ||	/* dirty_freerun_ceiling() */
	       global_zone_page_state(NR_FREE_PAGES) < computer.nr_frames / FEW_FREE_SHARE;
}

/*
 * Whether an access may raise a signal: because userfaultfd reports missing pages or writes
 * that way (UFFD_FEATURE_SIGBUS), hugetlb pages are exhausted, or a page is hwpoisoned.
 */
static bool may_lack_page(struct process *process, unsigned long number)
{
	struct vm_area_struct *vma = vma_lookup(mm_of(process), address_of_page(number));

	return has_broken_pages || (vma && (userfaultfd_missing(vma) || userfaultfd_minor(vma) ||
					    (process->protects_present && userfaultfd_wp(vma)) ||
					    is_vm_hugetlb_page(vma)));
}

/*
 * Contents of a page in device private memory, or NULL if it is not there. A page
 * with several mappings may fail to migrate back: rmap does not find mappings that
 * moved after KSM had merged the page.
 */
static const u64 *private_at(struct process *process, unsigned long number)
{
	pte_t entry = __pte(translate(mm_of(process), address_of_page(number)).entry);
	softleaf_t leaf;

	if (pte_none(entry) || pte_present(entry))
		return NULL;
	leaf = softleaf_from_pte(entry);
	return softleaf_is_device_private(leaf) ? private_words(softleaf_to_pfn(leaf)) : NULL;
}

/* Compare the signal of an access with the expected one. Return: whether it may go on. */
static bool may_go_on(struct process *process, unsigned long number, const char *what, int is,
		      int expected)
{
	if (is == expected)
		return !is;
	if (page_of(process, number)->is_poisoned && page_of(process, number)->may_be_gone && !is) {
		page_of(process, number)->is_poisoned = false;
		return true;
	}
	if (is == SIGSEGV && page_of(process, number)->may_be_guarded)
		return false;
	if (is == SIGKILL || ((is == SIGBUS || is == -EAGAIN) && may_lack_page(process, number)))
		return false;
	if (is == -EAGAIN && (may_fault_for_ever() || private_at(process, number)))
		return false;
	wrong("process %d %s page %#lx and gets signal %d, where %d is right",
	      process->number, what, number, is, expected);
	return false;
}

bool load_page(struct process *process, unsigned long number)
{
	unsigned long address = address_of_page(number), first = 0, last = 0;
	int expected = signal_expected(page_of(process, number), PROT_READ | PROT_WRITE);
	int is = access_word(address, false, &first);

	if (!is)
		is = access_word(address + LAST_WORD, false, &last);
	if (!is && is_behind_huge_end(page_of(process, number)))
		expected = 0;
	if (!may_go_on(process, number, "reads", is, expected))
		return false;
	compare(process, number, first, last);
	return true;
}

static void see_store(struct process *process, unsigned long number)
{
	struct user_page *page = page_of(process, number);
	struct vm_area_struct *vma = vma_lookup(mm_of(process), address_of_page(number));

	if (!page->is_followed)
		return;
	page->is_written = true;
	if (vma && vma->vm_flags & VM_SOFTDIRTY)
		see_soft_dirty_mapping(page);
}

bool store_page(struct process *process, unsigned long number, u64 value)
{
	struct user_page *page = page_of(process, number);
	unsigned long address = address_of_page(number), word = value;
	int expected = signal_expected(page, PROT_WRITE), is;

	/* With an entry, the fate of the word is unspecified. Without one, the store faults. */
	if (is_behind_huge_end(page) &&
	    translate(mm_of(process), address).entry & _PAGE_PRESENT)
		return false;
	check_protected(process, number);
	end_uffd_wp_by_write(process, number, 1);
	is = access_word(address, true, &word);
	if (!is)
		is = access_word(address + LAST_WORD, true, &word);
	if (!may_go_on(process, number, "writes", is, expected))
		return false;
	if (page->kind == PRIVATE_FILE)
		page->is_own = true;
	page->may_be_gone = page->is_droppable;
	see_store(process, number);
	*value_of(page) = value;
	return true;
}

/* --- mapped pages ------------------------------------------------------ */

void check_words(struct process *process, unsigned long address, const u64 *words)
{
	compare(process, (address - LIBMM_USER_ADDRESS) >> PAGE_SHIFT, words[0],
		words[LAST_WORD / sizeof(u64)]);
}

static void check_page(struct process *process, unsigned long number)
{
	unsigned long entry = translate(mm_of(process), address_of_page(number)).entry;
	struct user_page *page = page_of(process, number);
	struct folio *folio;
	const u64 *words;

	if (!(entry & _PAGE_PRESENT)) {
		words = private_at(process, number);
		if (words)
			check_words(process, address_of_page(number), words);
		return;
	}
	if (!page->kind) {
		wrong("process %d has %#lx at page %#lx, where it has mapped nothing",
		      process->number, entry, number);
		return;
	}
	folio = page_folio(pfn_to_page((entry & PTE_PFN_MASK) >> PAGE_SHIFT));
	words = __va(entry & PTE_PFN_MASK);
	/* Reclaim may drop a clean lazyfree page, which then reads as zeros. */
	if (folio_test_anon(folio) && !folio_test_swapbacked(folio) && !folio_test_dirty(folio) &&
	    !folio_test_hugetlb(folio) &&
	    !census.is_dirty[frame_of(&folio->page) + folio_page_idx(folio, virt_to_page(words))] &&
	    !page->may_be_gone && (page->kind != ANONYMOUS || page->value))
		wrong("process %d has written page %#lx, which reclaim may drop as it is clean",
		      process->number, number);
	note(PART_contents, words[0]);
	check_words(process, address_of_page(number), words);
}

void look_at_pages(struct process *process,
		   void (*look)(struct process *process, struct vm_area_struct *vma,
				unsigned long page))
{
	VMA_ITERATOR(vmi, mm_of(process), 0);
	struct vm_area_struct *vma;

	for_each_vma(vmi, vma) {
		unsigned long page = (vma->vm_start - LIBMM_USER_ADDRESS) >> PAGE_SHIFT;
		unsigned long end = page + vma_pages(vma);

		for (; page < end && end <= MOST_USER_PAGES; page++)
			if (is_vm_hugetlb_page(vma) && !userfaultfd_wp(vma) &&
			    !translate(vma->vm_mm, address_of_page(page)).at)
				page |= HPAGE_PMD_NR - 1;	/* no part of it is mapped */
			else
				look(process, vma, page);
	}
}

static void check_mapped_page(struct process *process, struct vm_area_struct *vma,
			      unsigned long number)
{
	check_protected(process, number);
	check_page(process, number);
}

void check_contents(void)
{
	long number;

	for (number = 0; number < MOST_PROCESSES; number++)
		if (process_of(number) && mm_of(process_of(number)))
			look_at_pages(process_of(number), check_mapped_page);
}
