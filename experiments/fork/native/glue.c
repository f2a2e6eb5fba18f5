// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's side of the fork experiment: compiled by kbuild against the
 * variant's own headers, linked to the variant's own memory.o and rmap.o.
 *
 * It builds two address spaces with one VMA each and calls what fork() and
 * munmap() call for it. Nothing here runs inside the clock but those calls.
 */
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pgtable.h>
#include <linux/rmap.h>
#include <linux/sched.h>
#include <linux/seqlock.h>
#include <linux/string.h>
#include <linux/swapops.h>
#include <asm/pgalloc.h>
#include "internal.h"
#include "kernel.h"
#include "fork.h"
#include "fork_kernel.h"
#include "page_tables.h"
#include "unmap.h"

static struct {
	struct mm_struct *parent_mm;
	struct mm_struct *child_mm;
	struct vm_area_struct parent;
	struct vm_area_struct child;
	struct fork_request request;
	unsigned int write_protect_seq;
	long error;
} world;

/* What a file's VMA has and an anonymous one has not. */
static const struct vm_operations_struct file_ops;

/* As fork() leaves it before it copies. */
static void init_mm_struct(struct mm_struct *mm, const long *rss)
{
	int i;

	host_init_mm(mm);
	for (i = 0; i < NR_MM_COUNTERS; i++)
		mm->rss_stat[i].count = rss[i];
}

static void init_vma(struct vm_area_struct *vma, struct mm_struct *mm,
		     const struct fork_request *request, vm_flags_t flags)
{
	memset(vma, 0, sizeof(*vma));
	vma->vm_mm = mm;
	vma->vm_start = request->address;
	vma->vm_end = request->address + request->nr_slots * PAGE_SIZE;
	host_set_pgoff(vma);
	vma->vm_page_prot = __pgprot(request->page_prot);
	vm_flags_init(vma, flags);
	if (request->has_anon_vma)
		vma->anon_vma = (struct anon_vma *)PAGING_ANON_VMA_ADDRESS;
	vma->vm_ops = request->anonymous ? NULL : &file_ops;
}

static void fill_tables(struct mm_struct *mm, const unsigned long *entries)
{
	host_fill_tables(mm, world.request.address, entries, world.request.nr_slots);
}

static void set_has_pinned(struct mm_struct *mm)
{
#ifdef HAVE_MM_FLAGS_SET
	mm_flags_set(MMF_HAS_PINNED, mm);
#else
	set_bit(MMF_HAS_PINNED, &mm->flags);
#endif
}

static void prepare(const struct fork_request *request)
{
	vm_flags_t child_flags = request->vm_flags;

	BUILD_BUG_ON(NR_MM_COUNTERS != FORK_NR_COUNTERS);
	host_place_frames();
	highest_memmap_pfn = ULONG_MAX;
	world.request = *request;
	world.error = 0;
	fork_reset(request->spare_pfn, request->nr_spare);

	if (!world.parent_mm) {
		world.parent_mm = host_new_mm();
		world.child_mm = host_new_mm();
	}
	init_mm_struct(world.parent_mm, request->parent_rss);
	init_mm_struct(world.child_mm, request->child_rss);
	INIT_LIST_HEAD(&init_mm.mmlist);
#ifdef CONFIG_MM_ID
	world.parent_mm->mm_id = MM_ID_MIN;
	world.child_mm->mm_id = MM_ID_MIN + request->child_number;
#endif
	atomic_set(&world.parent_mm->mm_users, request->mm_users);
	cpumask_set_cpu(0, mm_cpumask(world.parent_mm));
	if (request->mm_users > 1)
		cpumask_set_cpu(1, mm_cpumask(world.parent_mm));
	if (request->overlapped) {
		atomic_set(&world.parent_mm->tlb_flush_pending, 1);
		atomic_set(&world.parent_mm->tlb_flush_batched, 1);
	}
	if (request->has_pinned)
		set_has_pinned(world.parent_mm);

	if (!request->child_uffd_wp)
		child_flags &= ~VM_UFFD_WP;
	init_vma(&world.parent, world.parent_mm, request, request->vm_flags);
	init_vma(&world.child, world.child_mm, request, child_flags);
	fill_tables(world.parent_mm, request->parent);
	if (request->child)
		fill_tables(world.child_mm, request->child);
	world.write_protect_seq = world.parent_mm->write_protect_seq.sequence;
	fork_current()->mm = world.parent_mm;
	fork_current()->active_mm = world.parent_mm;
}

static void run(enum fork_operation operation)
{
	/* As unmap_mapping_pages() does, of what is not the process's own. */
	struct zap_details of_file = {
#ifdef HAVE_SKIP_COWS
		.skip_cows = true,
#endif
	};

	switch (operation) {
	case FORK_COPY:
		if (world.request.busy)
			set_tsk_need_resched(fork_current());
		world.error = copy_page_range(&world.child, &world.parent);
		clear_tsk_need_resched(fork_current());
		break;
	case FORK_UNMAP:
		host_unmap_all(&world.parent, false, fork_vma_ends);
		break;
	case FORK_UNMAP_CHILD:
		host_unmap_all(&world.child, false, fork_vma_ends);
		break;
	case FORK_EXIT:
		host_unmap_all(&world.parent, true, fork_vma_ends);
		break;
	case FORK_EXIT_CHILD:
		host_unmap_all(&world.child, true, fork_vma_ends);
		break;
	case FORK_DISCARD:
		host_unmap(&world.parent, false, NULL, fork_vma_ends);
		break;
	case FORK_TRUNCATE:
		host_unmap(&world.parent, false, &of_file, fork_vma_ends);
		break;
	case FORK_NR_OPERATIONS:
		WARN_ON(true);
		break;
	}
}

static unsigned long read_tables(struct mm_struct *mm, unsigned long *to)
{
	return host_read_tables(mm, world.request.address, to, world.request.nr_slots);
}

/*
 * One gather of another CPU may still be under way, and all translations that
 * reclaim has left must be gone as soon as anything was unmapped.
 */
static long left_pending(struct mm_struct *mm)
{
	int batched = atomic_read(&mm->tlb_flush_batched);

	return atomic_read(&mm->tlb_flush_pending) -
	       (mm == world.parent_mm && world.request.overlapped) +
	       ((batched & 0x7fff) - (batched >> 16));
}

static void read(struct fork_result *result)
{
	int i;

	result->nr_stray = read_tables(world.parent_mm, result->parent);
	result->nr_stray += read_tables(world.child_mm, result->child);
	for (i = 0; i < NR_MM_COUNTERS; i++) {
		result->parent_rss[i] = world.parent_mm->rss_stat[i].count;
		result->child_rss[i] = world.child_mm->rss_stat[i].count;
	}
	result->nr_lost_tables = host_lost_tables(world.parent_mm) ?:
				 host_lost_tables(world.child_mm);
	result->write_protects = world.parent_mm->write_protect_seq.sequence -
				 world.write_protect_seq;
	result->on_mmlist = !list_empty(&world.child_mm->mmlist);
	result->left_pending = left_pending(world.parent_mm) ?:
			       left_pending(world.child_mm);
	result->error = world.error;
	fork_read_counts(result);
}

/* Asks the kernel's own function about a folio whose two counts disagree. */
static int keeps_large_mapcount(void)
{
	struct page pages[4] __aligned(64) = { };
	struct folio *folio = (struct folio *)pages;
	int i;

	__SetPageHead(&pages[0]);
	folio_set_order(folio, 2);
	atomic_set(&folio->_entire_mapcount, -1);
	atomic_set(&folio->_large_mapcount, 41);
	for (i = 0; i < 4; i++)
		atomic_set(&pages[i]._mapcount, 0);
	return folio_mapcount(folio) == 42;
}

static const struct fork_ops ops = {
	.prepare = prepare,
	.run = run,
	.read = read,
	.keeps_large_mapcount = keeps_large_mapcount,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
#include "facts.h"
	{ }
};
