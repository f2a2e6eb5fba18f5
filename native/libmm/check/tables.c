// SPDX-License-Identifier: GPL-2.0-only
/* Check page tables: what each entry maps and permits, rss, and the size of the tables. */
#include <linux/hugetlb.h>
#include <linux/ksm.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pgtable.h>
#include <linux/rmap.h>
#include <linux/swap.h>
#include <linux/userfaultfd_k.h>
#include "census.h"
#include "devices.h"
#include "hosted.h"
#include "private.h"
#include "steps.h"
#include "trees.h"

/**
 * struct space - what the census found in an address space
 * @process: Process that the address space belongs to.
 * @rss: Expected RSS, by kind as in mm_counter().
 * @nr_entries: Entries that are not empty, in all tables.
 * @nr_inside: Of these, entries at addresses inside VMAs.
 * @ksm_zero_pages: Entries that map the zero page because KSM put it there.
 * @pool_pages: Mapped hugetlb memory, in base pages.
 * @table_bytes: Size of the tables of all levels, deposited ones included.
 */
struct space {
	struct process *process;
	long rss[NR_MM_COUNTERS];
	long nr_entries;
	long nr_inside;
	long table_bytes;
	long ksm_zero_pages;
	long pool_pages;
};

/*
 * PMD tables that several hugetlb mappings share. Each one records how often it
 * was met, and the mapping for which its entries are counted.
 */
#define MOST_SHARED 64
static struct shared_table {
	unsigned long pfn;
	int nr_met;
	const struct vm_area_struct *vma;
} shared_tables[MOST_SHARED];
static int nr_shared;

/* Return: the record of a shared PMD table, or NULL if the table is not shared. */
static struct shared_table *shared_table(unsigned long pfn)
{
	int i;

	if (!ptdesc_pmd_pts_count(page_ptdesc(pfn_to_page(pfn))))
		return NULL;
	for (i = 0; i < nr_shared && shared_tables[i].pfn != pfn; i++)
		;
	if (i == MOST_SHARED)
		give_up("more than %d tables are shared", MOST_SHARED);
	if (i == nr_shared)
		shared_tables[nr_shared++] = (struct shared_table){ .pfn = pfn };
	return &shared_tables[i];
}

static bool is_counted_elsewhere(const struct vm_area_struct *vma, const pmd_t *at)
{
	struct shared_table *its = shared_table(__pa(at) >> PAGE_SHIFT);

	if (!its)
		return false;
	its->vma = its->vma ?: vma;
	return its->vma != vma;
}

static void check_shared_tables(void)
{
	int i;

	for (i = 0; i < nr_shared; i++) {
		struct page *page = pfn_to_page(shared_tables[i].pfn);
		int nr = ptdesc_pmd_pts_count(page_ptdesc(page));

		if (nr != shared_tables[i].nr_met - 1)
			wrong("frame %#lx is a table that %d mappings share, and counts %d others",
			      page_to_pfn(page), shared_tables[i].nr_met, nr);
	}
	nr_shared = 0;
}

static int kind_of(const struct folio *folio)
{
	if (folio_test_anon(folio))
		return MM_ANONPAGES;
	return folio_test_swapbacked(folio) ? MM_SHMEMPAGES : MM_FILEPAGES;
}

#define WATCHED (VM_UFFD_WP | VM_UFFD_RWP)

/* --- what one entry may map and permit --------------------------------- */

static void check_anonymous(struct vm_area_struct *vma, unsigned long address, struct page *page,
			    bool is_writable)
{
	struct folio *folio = page_folio(page);
	pgoff_t index = folio_pgoff(folio) + folio_page_idx(folio, page);

	if (is_writable && !PageAnonExclusive(page))
		wrong("%#lx is writable, but its page is not exclusive to the process", address);
	if (folio_test_ksm(folio))
		return;
	if (index != linear_anon_page_index(vma, address))
		wrong("%#lx maps a page of index %#lx, where %#lx is right",
		      address, index, linear_anon_page_index(vma, address));
	if (!vma->anon_vma)
		wrong("%#lx maps an anonymous page, and its VMA has no anon_vma", address);
	else if (folio_anon_vma(folio)->root != vma->anon_vma->root)
		wrong("%#lx maps a page whose anon_vma is of another family than the VMA's",
		      address);
}

/* A page of a device has no folio->mapping, so compare it with the device's page. */
static bool check_page_of_device(struct vm_area_struct *vma, unsigned long address,
				 const struct page *page)
{
	pgoff_t index = linear_page_index(vma, address);

	if (!is_page_of_device(page))
		return false;
	if (!vma->vm_file || page_of_device(vma->vm_file, index) != page)
		wrong("%#lx maps frame %#lx of a device, which is not its page %#lx",
		      address, page_to_pfn(page), index);
	return true;
}

static void check_page_of_file(struct vm_area_struct *vma, unsigned long address,
			       struct page *page, bool is_writable)
{
	struct folio *folio = page_folio(page);

	if (check_page_of_device(vma, address, page))
		return;
	if (is_writable && !(vma->vm_flags & VM_SHARED))
		wrong("%#lx is a page of a file, and writable in a private mapping", address);
	if (!vma->vm_file || folio->mapping != vma->vm_file->f_mapping)
		wrong("%#lx maps a page of another file than its VMA", address);
	else if (folio->index + folio_page_idx(folio, page) != linear_page_index(vma, address))
		wrong("%#lx maps page %#lx of its file, where %#lx is right",
		      address, folio->index + folio_page_idx(folio, page),
		      linear_page_index(vma, address));
}

static void check_flags(struct vm_area_struct *vma, unsigned long address, unsigned long entry,
			bool is_protected)
{
	if (entry & _PAGE_RW && !(vma->vm_flags & VM_WRITE))
		wrong("%#lx is writable in a VMA that is not: %#lx", address, entry);
	if (is_protected && !(vma->vm_flags & WATCHED))
		wrong("%#lx is protected for userfaultfd in a VMA that it does not watch",
		      address);
	if (is_protected && entry & _PAGE_RW)
		wrong("%#lx is write-protected for userfaultfd and writable: %#lx",
		      address, entry);
	if (entry & _PAGE_DIRTY && !(entry & _PAGE_RW) && !(entry & _PAGE_SAVED_DIRTY) &&
	    boot_cpu_has(X86_FEATURE_USER_SHSTK))
		wrong("%#lx is a page of a shadow stack by its bits: %#lx", address, entry);
}

/* The folio state that reclaim, migration and splits depend on, packed below PAGE_SHIFT. */
static unsigned long state_of(struct folio *folio)
{
	return folio_test_referenced(folio) | folio_test_active(folio) << 1 |
	       folio_test_workingset(folio) << 2 | folio_test_dirty(folio) << 3 |
	       folio_test_unevictable(folio) << 4 | folio_test_swapcache(folio) << 5 |
	       (folio_test_large(folio) && folio_test_large_rmappable(folio)) << 6 |
	       folio_order(folio) << 8;
}

/* Check the frame that an entry maps. Return: whether rss and the folio count the mapping. */
static bool check_mapped(struct vm_area_struct *vma, unsigned long address, unsigned long pfn,
			 bool is_writable, bool is_by_frame)
{
	struct page *page;

	if (is_zero_pfn(pfn)) {
		if (is_writable)
			wrong("%#lx maps the zero page, and is writable", address);
		return false;
	}
	if (!is_ram(pfn)) {
		wrong("%#lx maps frame %#lx, which is no RAM", address, pfn);
		return false;
	}
	page = pfn_to_page(pfn);
	if (is_by_frame && !is_page_of_device(page))
		wrong("%#lx maps frame %#lx without a reference, which is no device's",
		      address, pfn);
	if (is_huge_zero_folio(page_folio(page))) {
		if (is_writable)
			wrong("%#lx maps the huge zero page, and is writable", address);
		return false;
	}
	note(PART_folios, address | state_of(page_folio(page)));
	if (folio_test_anon(page_folio(page)))
		check_anonymous(vma, address, page, is_writable);
	else
		check_page_of_file(vma, address, page, is_writable);
	return !is_by_frame;
}

/* --- entries ----------------------------------------------------------- */

/* Check and count an entry for a device private page. */
static void count_private(struct space *space, struct vm_area_struct *vma, unsigned long address,
			  pte_t pte)
{
	softleaf_t entry = softleaf_from_pte(pte);
	bool is_writable = softleaf_is_device_private_write(entry);
	unsigned long pfn = softleaf_to_pfn(entry);
	struct page *page = pfn_to_page(pfn);

	if (!is_private(pfn) || !is_taken_private(pfn)) {
		wrong("%#lx names page %#lx of a device, which has no such page", address, pfn);
		return;
	}
	if (is_writable && !(vma->vm_flags & VM_WRITE))
		wrong("%#lx names a page of a device as writable in a VMA that is not", address);
	if (is_writable && pte_swp_uffd(pte))
		wrong("%#lx names a page of a device as writable, and is protected for userfaultfd",
		      address);
	check_anonymous(vma, address, page, is_writable);
	census.mappings[frame_of(page)]++;
	refer(page_folio(page), 1);
	space->rss[MM_ANONPAGES]++;
}

static void count_swap(struct space *space, struct vm_area_struct *vma, unsigned long address,
		       pte_t pte)
{
	softleaf_t entry = softleaf_from_pte(pte);
	pgoff_t *index;

	if (softleaf_is_marker(entry)) {
		if (pte_is_uffd_wp_marker(pte) && !(vma->vm_flags & WATCHED))
			wrong("%#lx has a marker of userfaultfd in a VMA that it does not watch",
			      address);
		return;
	}
	if (softleaf_is_hwpoison(entry))
		return;
	if (softleaf_is_device_private(entry)) {
		count_private(space, vma, address, pte);
		return;
	}
	if (!softleaf_is_swap(entry)) {
		wrong("%#lx still has %#lx, which a step must not leave", address, pte_val(pte));
		return;
	}
	if (pte_swp_uffd(pte) && !(vma->vm_flags & WATCHED))
		wrong("%#lx is in swap, protected for userfaultfd in a VMA that it does not watch",
		      address);
	space->rss[MM_SWAPENTS]++;
	if (swp_offset(entry) >= MOST_SWAP_SLOTS) {
		wrong("%#lx names swap slot %#lx, which is none", address, swp_offset(entry));
		return;
	}
	index = &census.slot_index[swp_offset(entry)];
	if (++census.slot_entries[swp_offset(entry)] == 1 || *index != ANY_INDEX)
		*index = vma->vm_flags & VM_MERGEABLE ? ANY_INDEX :
			 linear_anon_page_index(vma, address);
	if (pte_swp_exclusive(pte) && census.slot_entries[swp_offset(entry)] > 1)
		wrong("%#lx is in swap and exclusive, but another entry names the same slot",
		      address);
}

/* All bits but the PFN or the swap slot. Swap entries have their flags in the low byte. */
static unsigned long flags_of(unsigned long entry)
{
	return entry & (entry & (_PAGE_PRESENT | _PAGE_PROTNONE) ? ~PTE_PFN_MASK : 0xff);
}

static void count_pte(struct space *space, struct vm_area_struct *vma, unsigned long address,
		      pte_t pte)
{
	struct folio *folio;

	space->nr_inside++;
	note(PART_entries, address | flags_of(pte_val(pte)));
	if (!pte_present(pte)) {
		count_swap(space, vma, address, pte);
		return;
	}
	check_flags(vma, address, pte_val(pte), pte_uffd(pte));
	space->ksm_zero_pages += is_ksm_zero_pte(pte);
	if (!check_mapped(vma, address, pte_pfn(pte), pte_write(pte), pte_special(pte)))
		return;
	folio = page_folio(pte_page(pte));
	census.mappings[frame_of(pte_page(pte))]++;
	census.is_dirty[frame_of(pte_page(pte))] |= pte_dirty(pte);
	refer(folio, 1);
	space->rss[kind_of(folio)]++;
}

static void count_huge(struct space *space, struct vm_area_struct *vma, unsigned long address,
		       pmd_t *at)
{
	struct folio *folio;
	pmd_t pmd = *at;
	bool is_counted;

	space->nr_inside++;
	note(PART_entries, address | flags_of(pmd_val(pmd)));
	if (!pmd_present(pmd) && is_vm_hugetlb_page(vma))
		return;	/* a marker */
	if (!(pmd_val(pmd) & (_PAGE_PRESENT | _PAGE_PROTNONE))) {
		wrong("%#lx still has the huge entry %#lx, which a step must not leave",
		      address, pmd_val(pmd));
		return;
	}
	if (vma_is_anonymous(vma))
		space->table_bytes += PTRS_PER_PTE * sizeof(pte_t);	/* deposited table */
	check_flags(vma, address, pmd_val(pmd), pmd_uffd(pmd));
	is_counted = check_mapped(vma, address, pmd_pfn(pmd), pmd_write(pmd), false);
	if (!is_counted)
		return;
	folio = page_folio(pmd_page(pmd));
	if (folio_test_hugetlb(folio))
		space->pool_pages += HPAGE_PMD_NR;
	if (is_counted_elsewhere(vma, at))
		return;
	census.huge_mappings[frame_of(&folio->page)]++;
	if (pmd_dirty(pmd))
		memset(&census.is_dirty[frame_of(&folio->page)], true, HPAGE_PMD_NR);
	refer(folio, 1);
	if (!folio_test_hugetlb(folio))
		space->rss[kind_of(folio)] += HPAGE_PMD_NR;
}

static pmd_t *pmd_at(struct mm_struct *mm, unsigned long address)
{
	pgd_t *pgd = pgd_offset(mm, address);
	p4d_t *p4d = p4d_offset(pgd, address);
	pud_t *pud;

	if (pgd_none(*pgd) || p4d_none(*p4d))
		return NULL;
	pud = pud_offset(p4d, address);
	return pud_none(*pud) || pud_leaf(*pud) ? NULL : pmd_offset(pud, address);
}

static void walk_vma(struct space *space, struct vm_area_struct *vma)
{
	unsigned long address = vma->vm_start, next;

	for (; address < vma->vm_end; address = next) {
		pmd_t *pmd = pmd_at(vma->vm_mm, address);
		pte_t *pte;

		next = min((address & PMD_MASK) + PMD_SIZE, vma->vm_end);
		if (!pmd || pmd_none(*pmd))
			continue;
		if (!(pmd_val(*pmd) & _PAGE_PRESENT) || pmd_leaf(*pmd)) {
			count_huge(space, vma, address, pmd);
			continue;
		}
		pte = pte_offset_kernel(pmd, address);
		for (; address < next; address += PAGE_SIZE, pte++)
			if (!pte_none(*pte))
				count_pte(space, vma, address, *pte);
	}
}

/* --- tables ------------------------------------------------------------ */

static void count_table(struct space *space, unsigned long pfn)
{
	space->table_bytes += PAGE_SIZE;
	if (!is_ram(pfn) || census.use[pfn - LIBMM_FIRST_PFN] != UNKNOWN) {
		wrong("frame %#lx is a page table of process %d, and something else, too",
		      pfn, space->process->number);
		return;
	}
	census.use[pfn - LIBMM_FIRST_PFN] = IS_TABLE;
}

static void walk_ptes(struct space *space, pmd_t pmd)
{
	pte_t *pte = (pte_t *)pmd_page_vaddr(pmd);
	int i;

	count_table(space, pmd_pfn(pmd));
	for (i = 0; i < PTRS_PER_PTE; i++)
		space->nr_entries += !pte_none(pte[i]);
}

static void walk_pmds(struct space *space, pud_t pud)
{
	pmd_t *pmd = pud_pgtable(pud);
	struct shared_table *shared = shared_table(__pa(pmd) >> PAGE_SHIFT);
	int i;

	if (shared && shared->nr_met++)
		space->table_bytes += PAGE_SIZE;
	else
		count_table(space, __pa(pmd) >> PAGE_SHIFT);
	for (i = 0; i < PTRS_PER_PMD; i++) {
		if (pmd_none(pmd[i]))
			continue;
		if (!(pmd_val(pmd[i]) & _PAGE_PRESENT) || pmd_leaf(pmd[i]))
			space->nr_entries++;
		else
			walk_ptes(space, pmd[i]);
	}
}

/* Skip the upper half, and entries of the lower half that are the kernel's own. */
static void walk_tables(struct space *space, struct mm_struct *mm)
{
	int i, j;

	for (i = 0; i < PTRS_PER_PGD / 2; i++) {
		p4d_t *p4d = p4d_offset(&mm->pgd[i], 0);
		pud_t *pud;

		if (pgd_none(mm->pgd[i]) || p4d_none(*p4d) ||
		    pgd_val(mm->pgd[i]) == pgd_val(init_mm.pgd[i]))
			continue;
		pud = p4d_pgtable(*p4d);
		count_table(space, __pa(pud) >> PAGE_SHIFT);
		for (j = 0; j < PTRS_PER_PUD; j++)
			if (!pud_none(pud[j]))
				walk_pmds(space, pud[j]);
	}
}

/* --- totals of an address space ---------------------------------------- */

static const char *const kinds[NR_MM_COUNTERS] = {
	[MM_FILEPAGES] = "MM_FILEPAGES", [MM_ANONPAGES] = "MM_ANONPAGES",
	[MM_SWAPENTS] = "MM_SWAPENTS", [MM_SHMEMPAGES] = "MM_SHMEMPAGES",
};

static void check_sizes(struct space *space, struct mm_struct *mm, long nr, long pages, long locked)
{
	int i;

	for (i = 0; i < NR_MM_COUNTERS; i++)
		note(PART_rss, space->rss[i]);
	for (i = 0; i < NR_MM_COUNTERS; i++)
		if (percpu_counter_sum(&mm->rss_stat[i]) != space->rss[i])
			wrong("process %d: %s is %lld, and %ld entries are of that kind",
			      space->process->number, kinds[i],
			      percpu_counter_sum(&mm->rss_stat[i]), space->rss[i]);
	if (!may_ksm_zero_pages_vary() &&
	    mm->ksm_zero_pages.counter != space->ksm_zero_pages)
		wrong("process %d: ksm_zero_pages is %ld, and %ld entries are such",
		      space->process->number, (long)mm->ksm_zero_pages.counter,
		      space->ksm_zero_pages);
	if (space->rss[MM_SWAPENTS] && list_empty(&mm->mmlist))
		wrong("process %d has pages in swap, and swapoff does not know of it",
		      space->process->number);
	if (mm->map_count != nr)
		wrong("process %d: map_count is %d, and there are %ld VMAs",
		      space->process->number, mm->map_count, nr);
	if (mm->total_vm != pages)
		wrong("process %d: total_vm is %lu, and VMAs have %ld pages",
		      space->process->number, mm->total_vm, pages);
	if (mm->locked_vm != locked)
		wrong("process %d: locked_vm is %lu, and locked VMAs have %ld pages",
		      space->process->number, mm->locked_vm, locked);
	if (space->nr_entries != space->nr_inside)
		wrong("process %d: its tables have %ld entries, %ld of them in VMAs",
		      space->process->number, space->nr_entries, space->nr_inside);
	/* Pages in a shared PMD table are counted only for the mm that faulted them in. */
	if (atomic_long_read(&mm->hugetlb_usage) != space->pool_pages && !tables_may_be_shared)
		wrong("process %d: hugetlb_usage is %ld, and entries map %ld pages of the pool",
		      space->process->number, atomic_long_read(&mm->hugetlb_usage),
		      space->pool_pages);
	if (mm_pgtables_bytes(mm) != space->table_bytes)
		wrong("process %d: its tables are counted as %lu bytes, and have %ld",
		      space->process->number, mm_pgtables_bytes(mm), space->table_bytes);
}

static void check_space(struct process *process)
{
	struct mm_struct *mm = mm_of(process);
	struct space space = { .process = process };
	long nr = 0, pages = 0, locked = 0;
	struct vm_area_struct *vma;

	VMA_ITERATOR(vmi, mm, 0);

	for_each_vma(vmi, vma) {
		nr++;
		note(PART_vmas, vma->vm_start ^ vma->vm_flags << 12);
		note(PART_vmas, vma->vm_end ^ vma->vm_pgoff << 12);
		pages += vma_pages(vma);
		locked += vma->vm_flags & VM_LOCKED ? vma_pages(vma) : 0;
		walk_vma(&space, vma);
	}
	walk_tables(&space, mm);
	check_sizes(&space, mm, nr, pages, locked);
}

/* Mark all PGDs, also those of an mm that no process uses any more. */
static void mark_top_tables(void)
{
	struct ptdesc *top;
	int i;

	list_for_each_entry(top, &pgd_list, pt_list)
		for (i = 0; i < 1 << pgd_allocation_order(); i++)
			census.use[frame_of(ptdesc_page(top)) + i] = IS_TABLE;
}

void check_address_spaces(void)
{
	long number;

	mark_top_tables();
	for (number = 0; number < MOST_PROCESSES; number++)
		if (process_of(number) && mm_of(process_of(number)))
			check_space(process_of(number));
	check_shared_tables();
}
