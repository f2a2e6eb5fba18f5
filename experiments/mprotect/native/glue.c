// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's side of the mprotect experiment: compiled by kbuild against the
 * variant's own headers, linked to the variant's own mprotect.o.
 *
 * It builds an address space with one VMA, which has the flags and the
 * protection that mprotect_fixup() gives it, and calls change_protection() as
 * that does. Nothing here runs inside the clock but such calls.
 */
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pgtable.h>
#include <linux/sched.h>
#include <linux/sched/coredump.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <asm/tlb.h>
#include "internal.h"
#include "kernel.h"
#include "mprotect.h"
#include "mprotect_kernel.h"
#include "page_tables.h"
#include "paging_place.h"

static struct {
	struct task_struct task;
	struct mm_struct *mm;
	struct vm_area_struct vma;
	struct mprotect_request request;
	long nr_pages;
} world;

/* What a file's VMA has and an anonymous one has not. */
static const struct vm_operations_struct file_ops;

static void init_vma(struct vm_area_struct *vma, const struct mprotect_request *request)
{
	memset(vma, 0, sizeof(*vma));
	vma->vm_mm = world.mm;
	vma->vm_start = request->address;
	vma->vm_end = request->address + request->nr_slots * PAGE_SIZE;
	host_set_pgoff(vma);
	vma->vm_page_prot = __pgprot(request->page_prot);
	vm_flags_init(vma, request->vm_flags);
	vma->anon_vma = (struct anon_vma *)PAGING_ANON_VMA_ADDRESS;
	vma->vm_ops = request->anonymous ? NULL : &file_ops;
}

static void prepare(const struct mprotect_request *request)
{
	host_place_frames();
	highest_memmap_pfn = ULONG_MAX;
	host_reset_flushes();
	world.request = *request;
	world.nr_pages = 0;

	if (!world.mm)
		world.mm = host_new_mm();
	host_init_mm(world.mm);
	atomic_set(&world.mm->mm_users, request->mm_users);
	cpumask_set_cpu(0, mm_cpumask(world.mm));
	if (request->overlapped) {
		atomic_set(&world.mm->tlb_flush_pending, 1);
		atomic_set(&world.mm->tlb_flush_batched, 1);
	}
	init_vma(&world.vma, request);
	host_fill_tables(world.mm, request->address, request->entries, request->nr_slots);

	world.task.mm = world.mm;
	world.task.active_mm = world.mm;
	host_set_current(&world.task);
}

static void run(void)
{
	unsigned long start = world.request.address + world.request.first_slot * PAGE_SIZE;
	unsigned long bytes = world.request.nr_changed * PAGE_SIZE;
	unsigned int i;

	for (i = 0; i < world.request.nr_calls; i++, start += bytes) {
		struct mmu_gather tlb;

		tlb_gather_mmu(&tlb, world.mm);
		world.nr_pages += change_protection(&tlb, &world.vma, start, start + bytes,
						    world.request.cp_flags);
		tlb_finish_mmu(&tlb);
	}
}

static void read(struct mprotect_result *result)
{
	int batched = atomic_read(&world.mm->tlb_flush_batched);

	result->nr_stray = host_read_tables(world.mm, world.request.address,
					    result->entries, world.request.nr_slots);
	result->nr_lost_tables = host_lost_tables(world.mm);
	/* One gather of another CPU may be under way; what reclaim left must be flushed. */
	result->left_pending = atomic_read(&world.mm->tlb_flush_pending) -
			       !!world.request.overlapped +
			       ((batched & 0x7fff) - (batched >> 16));
	result->nr_pages = world.nr_pages;
	result->flushes = host_flushes;
}

static unsigned long *table(unsigned long slot)
{
	unsigned long address = world.request.address + slot * PAGE_SIZE;

	return (unsigned long *)pmd_page_vaddr(*host_look_up_pmd(world.mm, address));
}

static const struct mprotect_ops ops = {
	.prepare = prepare,
	.run = run,
	.read = read,
	.table = table,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
#include "facts.h"
	{ }
};
