// SPDX-License-Identifier: GPL-2.0-only
/* What the machine and the scheduler do to pages of a process: calls.def has these functions. */
#include <linux/mempolicy.h>
#include <linux/mm.h>
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

/* arch/x86/lib/copy_mc_64.S */
unsigned long copy_mc_enhanced_fast_string(void *to, const void *from, unsigned int bytes);

/* The machine notices it when the kernel copies such a frame. */
unsigned long copy_mc_to_kernel(void *to, const void *from, unsigned int bytes)
{
	HOST_STUB("custom");
	if (virt_addr_valid(from) && test_bit(frame_at(from), unreadable))
		return bytes;
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

/* --- which CPU uses a page --------------------------------------------- */

/* Pages are made inaccessible, so that a fault shows who uses them: task_numa_work(). */
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

/* A task has no statistics, so each fault may move its page. */
bool should_numa_migrate_memory(struct task_struct *task, struct folio *folio, int from, int cpu)
{
	HOST_STUB("custom");
	return true;
}
