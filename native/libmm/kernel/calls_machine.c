// SPDX-License-Identifier: GPL-2.0-only
/* Calls that act as hardware, a device or the scheduler. calls.def lists the functions. */
#include <linux/highmem.h>
#include <linux/hmm.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/pagemap.h>
#include <linux/sched/numa_balancing.h>
#include <linux/sched/sysctl.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include "calls.h"
#include "hosted.h"
#include "steps.h"

/* --- frames that cannot be read ---------------------------------------- */

static DECLARE_BITMAP(unreadable, LIBMM_MOST_RAM_BYTES >> PAGE_SHIFT);

static unsigned long frame_at(const void *address)
{
	return page_to_pfn(virt_to_page(address)) - LIBMM_FIRST_PFN;
}

/* --- frames that are not in the direct map ------------------------------ */

static DECLARE_BITMAP(hidden, LIBMM_MOST_RAM_BYTES >> PAGE_SHIFT);

int set_direct_map_invalid_noflush(struct page *page)
{
	HOST_STUB("custom");
	__set_bit(page_to_pfn(page) - LIBMM_FIRST_PFN, hidden);
	return 0;
}

int set_direct_map_default_noflush(struct page *page)
{
	HOST_STUB("custom");
	__clear_bit(page_to_pfn(page) - LIBMM_FIRST_PFN, hidden);
	return 0;
}

/* arch/x86/lib/copy_mc_64.S */
unsigned long copy_mc_enhanced_fast_string(void *to, const void *from, unsigned int bytes);

/* Copying an unreadable frame raises a machine check, so nothing is copied. */
unsigned long copy_mc_to_kernel(void *to, const void *from, unsigned int bytes)
{
	HOST_STUB("custom");
	if (virt_addr_valid(from) && test_bit(frame_at(from), unreadable))
		return bytes;
	if (virt_addr_valid(from) && test_bit(frame_at(from), hidden))
		wrong("the kernel copies from %#lx, which it does not map", __pa(from));
	if (cpu_feature_enabled(X86_FEATURE_ERMS))
		return copy_mc_enhanced_fast_string(to, from, bytes);
	memcpy(to, from, bytes);
	return 0;
}

long call_unreadable(long start, long bytes, long unused, long unused2)
{
	long i, nr = 0;

	for (i = 0; i < bytes >> PAGE_SHIFT; i++) {
		unsigned long entry = translate(current->mm, start + (i << PAGE_SHIFT)).entry;

		if (!(entry & _PAGE_PRESENT) || !is_ram(pte_pfn(__pte(entry))))
			continue;
		__set_bit(pte_pfn(__pte(entry)) - LIBMM_FIRST_PFN, unreadable);
		nr++;
	}
	if (nr)
		see_broken_page();
	return nr;
}

/* --- a device that shares an address space ------------------------------ */

static bool see_change(struct mmu_interval_notifier *notifier,
		       const struct mmu_notifier_range *range, unsigned long sequence)
{
	mmu_interval_set_seq(notifier, sequence);
	return true;
}

static const struct mmu_interval_notifier_ops device_operations = { .invalidate = see_change };

/* The device mirrors page table entries with hmm_range_fault(). */
long call_hmm(long start, long bytes, long writes, long unused)
{
	static unsigned long entries[MOST_PAGES];
	struct mmu_interval_notifier notifier;
	struct hmm_range range = {
		.notifier = &notifier,
		.start = start,
		.end = start + min(bytes, MOST_PAGES << PAGE_SHIFT),
		.hmm_pfns = entries,
		.default_flags = HMM_PFN_REQ_FAULT | (writes ? HMM_PFN_REQ_WRITE : 0),
	};
	long error = mmu_interval_notifier_insert(&notifier, current->mm, range.start,
						  range.end - range.start, &device_operations);

	end_uffd_wp_by_write(current_process(), (start - LIBMM_USER_ADDRESS) >> PAGE_SHIFT,
			     bytes >> PAGE_SHIFT);
	if (error)
		return error;
	range.notifier_seq = mmu_interval_read_begin(&notifier);
	mmap_read_lock(current->mm);
	error = hmm_range_fault(&range);
	mmap_read_unlock(current->mm);
	mmu_interval_notifier_remove(&notifier);
	return error;
}

/* --- which CPU uses a page --------------------------------------------- */

/* Install NUMA hinting entries, as task_numa_work() does: the next access faults. */
long call_numa_hint(long start, long bytes, long tiering, long unused)
{
	unsigned long end = start + bytes, nr = 0;
	struct vm_area_struct *vma;

	sysctl_numa_balancing_mode = tiering ? NUMA_BALANCING_MEMORY_TIERING :
					       NUMA_BALANCING_NORMAL;
	mmap_read_lock(current->mm);
	for (vma = find_vma(current->mm, start); vma && vma->vm_start < end;
	     vma = find_vma(current->mm, vma->vm_end))
		if (vma_migratable(vma) && vma_policy_mof(vma) && vma_is_accessible(vma) &&
		    !is_vm_hugetlb_page(vma) && !(vma->vm_flags & VM_MIXEDMAP))
			nr += change_prot_numa(vma, max_t(unsigned long, start, vma->vm_start),
					       min(end, vma->vm_end));
	mmap_read_unlock(current->mm);
	return nr;
}

int sysctl_numa_balancing_mode;

void set_numabalancing_state(bool is_enabled)
{
	HOST_STUB("custom");
	sysctl_numa_balancing_mode = is_enabled;
}

/* There are no NUMA statistics of tasks, so each hinting fault may migrate its page. */
bool should_numa_migrate_memory(struct task_struct *task, struct folio *folio, int from, int cpu)
{
	HOST_STUB("custom");
	return true;
}
