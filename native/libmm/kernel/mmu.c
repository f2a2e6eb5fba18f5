// SPDX-License-Identifier: GPL-2.0-only
/*
 * Translations: the page tables, and a TLB for each CPU that drops an entry only
 * when it is flushed. A missing flush therefore shows as a TLB entry that the
 * page tables no longer allow.
 */
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/pgtable.h>
#include <linux/vmalloc.h>
#include <asm/tlbflush.h>
#include <asm/mmu_context.h>
#include "hosted.h"
#include "mmu.h"
#include "steps.h"

#define TLB_ENTRIES 65536
#define MOST_FORGOTTEN 4096
#define LARGEST_BY_PAGE 4096	/* pages; larger ranges scan the whole TLB */

static struct tlb_entry *tlb[MOST_CPUS + 1];	/* the last one is the device's */

static struct tlb_entry *tlb_of(int cpu)
{
	if (!tlb[cpu])
		tlb[cpu] = host_alloc(TLB_ENTRIES * sizeof(*tlb[cpu]));
	return tlb[cpu];
}

/* Hash ctx_id and not the mm pointer, so that slots do not depend on addresses. */
static struct tlb_entry *slot_of(unsigned long ctx_id, unsigned long page, int cpu)
{
	unsigned long hash = page ^ page >> 16 ^ ctx_id * 2654435761UL;

	return &tlb_of(cpu)[hash % TLB_ENTRIES];
}

/*
 * Pending flushes. They are applied before the TLB is used again. The work of a
 * flush is that of this model and not the kernel's, so it must not be timed.
 */
static struct forgotten {
	const struct mm_struct *mm;	/* NULL: all address spaces */
	unsigned long ctx_id;
	unsigned long first, end;	/* pages */
	int cpu;
} forgotten[MOST_FORGOTTEN];

static unsigned int nr_forgotten;

static void drop_range(const struct forgotten *its)
{
	const struct mm_struct *mm = its->mm;
	unsigned long first = its->first, end = its->end, page, i;
	int cpu = its->cpu;

	if (mm && end - first <= LARGEST_BY_PAGE) {
		/* A flush of any part of a huge translation drops all of it. */
		for (page = round_down(first, HPAGE_PMD_NR);
		     page < round_up(end, HPAGE_PMD_NR); page++) {
			struct tlb_entry *entry = slot_of(its->ctx_id, page, cpu);

			if (entry->mm == mm && entry->page == page &&
			    (entry->entry & _PAGE_PSE || (page >= first && page < end)))
				entry->mm = NULL;
		}
		return;
	}
	for (i = 0; i < TLB_ENTRIES; i++) {
		struct tlb_entry *entry = &tlb_of(cpu)[i];

		if (!mm || (entry->mm == mm && entry->page >= first && entry->page < end))
			entry->mm = NULL;
	}
}

static void drop_forgotten(void)
{
	unsigned int i;

	for (i = 0; i < nr_forgotten; i++)
		drop_range(&forgotten[i]);
	nr_forgotten = 0;
}

static void forget_range(int cpu, const struct mm_struct *mm, unsigned long first,
			 unsigned long end)
{
	if (nr_forgotten == MOST_FORGOTTEN)
		drop_forgotten();
	forgotten[nr_forgotten++] = (struct forgotten){
		.mm = mm, .ctx_id = mm ? mm->context.ctx_id : 0, .first = first, .end = end,
		.cpu = cpu,
	};
}

struct tlb_entry *tlb_slot(struct mm_struct *mm, unsigned long page, int cpu)
{
	drop_forgotten();
	return slot_of(mm->context.ctx_id, page, cpu);
}

unsigned long nr_flushed_pages;

/* A flush of more than LARGEST_BY_PAGE pages counts as a full flush. */
static void count_flushed(unsigned long nr)
{
	nr_flushed_pages += min_t(unsigned long, nr, LARGEST_BY_PAGE);
}

/* As in arch/x86/mm/tlb.c, flush the CPUs in mm_cpumask(). */
void flush_tlb_mm_range(struct mm_struct *mm, unsigned long start, unsigned long end,
			unsigned int stride_shift, bool freed_tables)
{
	unsigned long last = end == TLB_FLUSH_ALL ? TASK_SIZE_MAX : end;
	int cpu;

	HOST_STUB("custom");
	count_flushed(PAGE_ALIGN(last - start) >> PAGE_SHIFT);
	for_each_cpu(cpu, mm_cpumask(mm))
		forget_range(cpu, mm, start >> PAGE_SHIFT, PAGE_ALIGN(last) >> PAGE_SHIFT);
	mmu_notifier_arch_invalidate_secondary_tlbs(mm, start, last);
}

void arch_tlbbatch_flush(struct arch_tlbflush_unmap_batch *batch)
{
	int cpu;

	HOST_STUB("custom");
	count_flushed(LARGEST_BY_PAGE);
	for_each_cpu(cpu, &batch->cpumask)
		forget_range(cpu, NULL, 0, 0);
	cpumask_clear(&batch->cpumask);
}

void flush_tlb_all(void)
{
	int cpu;

	HOST_STUB("custom");
	count_flushed(LARGEST_BY_PAGE);
	for_each_online_cpu(cpu)
		forget_range(cpu, NULL, 0, 0);
}

static struct mm_struct *loaded[MOST_CPUS];

/* A CPU that switches to another mm drops all translations of the old one. */
void load_address_space(struct mm_struct *mm, int cpu)
{
	struct mm_struct *old = loaded[cpu];

	if (old == mm)
		return;
	if (old) {
		forget_range(cpu, old, 0, TASK_SIZE_MAX >> PAGE_SHIFT);
		cpumask_clear_cpu(cpu, mm_cpumask(old));
	}
	loaded[cpu] = mm;
	if (mm)
		cpumask_set_cpu(cpu, mm_cpumask(mm));
}

void unload_address_space(struct mm_struct *mm)
{
	int cpu;

	for_each_online_cpu(cpu)
		if (loaded[cpu] == mm)
			load_address_space(NULL, cpu);
}

/* --- a device with a TLB of its own, as virtual machines have ----------- */

static int forget(struct mmu_notifier *device, const struct mmu_notifier_range *range)
{
	/* The end may be ULONG_MAX. */
	forget_range(MOST_CPUS, range->mm, range->start >> PAGE_SHIFT,
		     ((range->end - 1) >> PAGE_SHIFT) + 1);
	return 0;
}

long attach_device(struct mmu_notifier *device, struct mm_struct *mm)
{
	static const struct mmu_notifier_ops operations = { .invalidate_range_start = forget };

	if (device->mm)
		return -EBUSY;
	device->ops = &operations;
	return mmu_notifier_register(device, mm);
}

void detach_device(struct mmu_notifier *device)
{
	if (!device->mm)
		return;
	forget_range(MOST_CPUS, device->mm, 0, TASK_SIZE_MAX >> PAGE_SHIFT);
	mmu_notifier_unregister(device, device->mm);
	device->mm = NULL;
}

/* The device caches every translation that its process uses, until it is notified. */
void remember_on_device(const struct tlb_entry *entry)
{
	if (current_process()->device.mm == entry->mm)
		*tlb_slot(entry->mm, entry->page, MOST_CPUS) = *entry;
}

/* --- the page tables --------------------------------------------------- */

static struct translation of_pmd(pmd_t *pmd, unsigned long address)
{
	struct translation found = { .at = (unsigned long *)pmd, .is_huge = true };
	unsigned long frames = PMD_MASK & PTE_PFN_MASK;

	if (pmd_val(*pmd) & _PAGE_PRESENT)
		found.entry = (pmd_val(*pmd) & ~(PTE_PFN_MASK & ~frames)) |
			      (address & ~PMD_MASK & PAGE_MASK);
	return found;
}

struct translation translate(struct mm_struct *mm, unsigned long address)
{
	const struct translation none = { };
	pgd_t *pgd = pgd_offset(mm, address);
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;
	pte_t *pte;

	if (pgd_none(*pgd))
		return none;
	p4d = p4d_offset(pgd, address);
	if (p4d_none(*p4d))
		return none;
	pud = pud_offset(p4d, address);
	if (pud_none(*pud) || !pud_present(*pud) || pud_leaf(*pud))
		return none;
	pmd = pmd_offset(pud, address);
	if (pmd_none(*pmd))
		return none;
	if (!(pmd_val(*pmd) & _PAGE_PRESENT) || pmd_leaf(*pmd))
		return of_pmd(pmd, address);
	pte = pte_offset_kernel(pmd, address);
	return (struct translation){
		.entry = pte_val(*pte), .at = (unsigned long *)pte,
	};
}

static void check_entry(struct tlb_entry *entry, int cpu)
{
	unsigned long address = entry->page << PAGE_SHIFT;
	unsigned long is = translate(entry->mm, address).entry;

	if (is & _PAGE_PRESENT && !((is ^ entry->entry) & PTE_PFN_MASK) &&
	    !(entry->entry & ~is & _PAGE_RW))
		return;
	if (cpu == MOST_CPUS)
		wrong("a device still translates %#lx by %#lx, the entry is %#lx: it was not told",
		      address, entry->entry, is);
	else
		wrong("CPU %d still translates %#lx by %#lx, the entry is %#lx: a flush is missing",
		      cpu, address, entry->entry, is);
	entry->mm = NULL;
}

/*
 * An interrupted step may have cleared an entry without flushing yet. The page
 * still exists then, so check only against calls that have returned: an unmapped
 * page must be gone, a protected one must be protected, and a moved one must not
 * be reachable at its old address.
 */
static void check_allowed(struct process *process, const struct tlb_entry *entry, int cpu)
{
	unsigned long address = entry->page << PAGE_SHIFT;
	unsigned long is = translate(entry->mm, address).entry;
	struct vm_area_struct *vma = vma_lookup(entry->mm, address);
	bool writes = entry->entry & _PAGE_RW;

	if (!vma || !(vma->vm_flags & VM_ACCESS_FLAGS) ||
	    (writes && !(vma->vm_flags & VM_WRITE)))
		wrong("CPU %d still translates %#lx by %#lx, which its VMA does not allow",
		      cpu, address, entry->entry);
	else if (is & _PAGE_PRESENT && !((is ^ entry->entry) & PTE_PFN_MASK) && writes &&
		 !(is & _PAGE_RW))
		wrong("CPU %d still writes to %#lx by %#lx, the entry is %#lx: a flush is missing",
		      cpu, address, entry->entry, is);
	else if (!(is & _PAGE_PRESENT) && is_ram((entry->entry & PTE_PFN_MASK) >> PAGE_SHIFT))
		check_words(process, address, __va(entry->entry & PTE_PFN_MASK));
}

void check_tlb_of(struct process *process)
{
	struct mm_struct *mm = mm_of(process);
	unsigned long i;
	int cpu;

	drop_forgotten();
	for_each_cpu(cpu, mm_cpumask(mm))
		for (i = 0; tlb[cpu] && i < TLB_ENTRIES; i++)
			if (tlb[cpu][i].mm == mm)
				check_allowed(process, &tlb[cpu][i], cpu);
}

/* Check that the page tables still allow what the TLBs allow. */
void check_tlb(void)
{
	unsigned long i;
	int cpu;

	drop_forgotten();
	for (cpu = 0; cpu <= MOST_CPUS; cpu++)
		for (i = 0; tlb[cpu] && i < TLB_ENTRIES; i++)
			if (tlb_of(cpu)[i].mm)
				check_entry(&tlb_of(cpu)[i], cpu);
}
