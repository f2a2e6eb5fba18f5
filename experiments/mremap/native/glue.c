// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's side of the mremap experiment: compiled by kbuild against the
 * variant's own headers, linked to the variant's own mremap.o.
 *
 * It builds an address space with two VMAs, as move_vma() has them after
 * copy_vma(), and calls move_page_tables() as that does. The page tables of the
 * new one are there. Nothing here runs inside the clock but such calls.
 */
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pgtable.h>
#include <linux/sched.h>
#include <linux/sched/coredump.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/userfaultfd_k.h>
#include "internal.h"
#include "kernel.h"
#include "mremap.h"
#include "mremap_kernel.h"
#include "page_tables.h"
#include "paging_place.h"

static struct {
	struct task_struct task;
	struct mm_struct *mm;
	struct vm_area_struct old, new;
	struct mremap_request request;
	unsigned long nr_bytes;
} world;

#ifdef CONFIG_USERFAULTFD
/* Of a userfaultfd that does not ask for remap events. */
static struct userfaultfd_ctx uffd;
#endif

static void init_vma(struct vm_area_struct *vma, unsigned long start, unsigned long end)
{
	memset(vma, 0, sizeof(*vma));
	vma->vm_mm = world.mm;
	vma->vm_start = start;
	vma->vm_end = end;
	host_set_pgoff(vma);
	vma->vm_page_prot = __pgprot(world.request.page_prot);
	vm_flags_init(vma, world.request.vm_flags);
	vma->anon_vma = (struct anon_vma *)PAGING_ANON_VMA_ADDRESS;
}

static void init_vmas(const struct mremap_request *request)
{
	unsigned long by = request->by * PAGE_SIZE;
	unsigned long start = request->address;
	unsigned long end = start + request->nr_slots * PAGE_SIZE - by;

	init_vma(&world.old, start, end);
	init_vma(&world.new, start + by, end + by);
#ifdef CONFIG_USERFAULTFD
	if (request->loses_uffd)
		world.old.vm_userfaultfd_ctx.ctx = &uffd;
#endif
}

static void prepare(const struct mremap_request *request)
{
	host_place_frames();
	highest_memmap_pfn = ULONG_MAX;
	host_reset_flushes();
	world.request = *request;
	world.nr_bytes = 0;

	if (!world.mm)
		world.mm = host_new_mm();
	host_init_mm(world.mm);
	cpumask_set_cpu(0, mm_cpumask(world.mm));
	if (request->reclaimed)
		atomic_set(&world.mm->tlb_flush_batched, 1);
	init_vmas(request);
	host_fill_tables(world.mm, request->address, request->entries, request->nr_slots);

	world.task.mm = world.mm;
	world.task.active_mm = world.mm;
	host_set_current(&world.task);
}

static unsigned long move(unsigned long from, unsigned long to, unsigned long bytes)
{
#ifdef HAVE_MREMAP_PAGETABLE_MOVE
	PAGETABLE_MOVE(pmc, &world.old, &world.new, from, to, bytes);

	return move_page_tables(&pmc);
#else
	return move_page_tables(&world.old, from, &world.new, to, bytes, false, false);
#endif
}

static void run(void)
{
	unsigned long from = world.request.address + world.request.first * PAGE_SIZE;
	unsigned long bytes = world.request.nr_moved * PAGE_SIZE;
	unsigned int i;

	for (i = 0; i < world.request.nr_calls; i++, from += world.request.stride * PAGE_SIZE)
		world.nr_bytes += move(from, from + world.request.by * PAGE_SIZE, bytes);
}

static void read(struct mremap_result *result)
{
	int batched = atomic_read(&world.mm->tlb_flush_batched);

	result->nr_stray = host_read_tables(world.mm, world.request.address,
					    result->entries, world.request.nr_slots);
	result->nr_lost_tables = host_lost_tables(world.mm);
	result->left_batched = (batched & 0x7fff) - (batched >> 16);
	result->nr_bytes = world.nr_bytes;
	result->flushes = host_flushes;
}

static const struct mremap_ops ops = {
	.prepare = prepare,
	.run = run,
	.read = read,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
#include "facts.h"
	{ }
};
