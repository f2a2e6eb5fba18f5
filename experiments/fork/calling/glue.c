// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's side of a fork as a call: compiled by kbuild against the
 * variant's own headers, linked to the variant's own fork.o, maple_tree.o,
 * slub.o, rmap.o, memory.o, page_alloc.o and what these call.
 *
 * The parent is made by the kernel's functions, too: mm_alloc(), a VMA for each
 * that was recorded, and a fault for each anonymous page. Nothing of this is
 * timed. What is timed is one call of copy_mm() or mmput(), or a fault for each
 * page, as the CPU would take them.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/huge_mm.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mmap_lock.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/swap.h>
#include "internal.h"
#include "kernel.h"
#include "calling_kernel.h"
#include "node.h"
#include "tlb_flushes.h"

extern unsigned long highest_memmap_pfn;

struct calling_world calling_world;
#define world calling_world

/* Of all files: what a fault of a private mapping copies. */
static struct page *cached_page;
static struct inode inode = { .i_size = MAX_LFS_FILESIZE };
static long fault_error;

static const unsigned long *asked(unsigned long index)
{
	return world.request.vmas + index * ASKED_WORDS;
}

/* --- Files --------------------------------------------------------------- */

/* As filemap_fault() where the page is cached. */
static vm_fault_t fault(struct vm_fault *vmf)
{
	get_page(cached_page);
	vmf->page = cached_page;
	return 0;
}

/* What can map pages around may be called by the lock of a VMA alone; it is not. */
static const struct vm_operations_struct file_ops = {
	.fault = fault,
	.map_pages = filemap_map_pages,
};

static void init_file(unsigned long number)
{
	struct address_space *mapping = &world.mappings[number];
	struct file *file = &world.files[number];

	memset(mapping, 0, sizeof(*mapping));
	memset(file, 0, sizeof(*file));
	mapping->host = &inode;
	mapping->i_mmap = RB_ROOT_CACHED;
	init_rwsem(&mapping->i_mmap_rwsem);
	atomic_set(&mapping->i_mmap_writable, 0);
	file->f_mapping = mapping;
#ifdef HAVE_FILE_REF
	file_ref_init(&file->f_ref, 1);
#else
	atomic_long_set(&file->f_count, 1);
#endif
}

/* Each has a further reference, so that none is closed. */
static void init_files(void)
{
	unsigned long i, nr = 0;

	for (i = 0; i < world.request.nr_vmas; i++)
		nr = max(nr, asked(i)[ASKED_FILE]);
	if (nr > world.nr_files) {
		host_free(world.files);
		host_free(world.mappings);
		world.files = host_alloc(nr * sizeof(*world.files));
		world.mappings = host_alloc(nr * sizeof(*world.mappings));
	}
	world.nr_files = nr;
	for (i = 0; i < nr; i++)
		init_file(i);
	cached_page = alloc_pages_node_noprof(0, GFP_KERNEL | __GFP_ZERO, 0);
}

/* --- The parent ------------------------------------------------------------ */

static bool add_vma(const unsigned long *words)
{
	struct vm_area_struct *vma = vm_area_alloc(world.parent);
	unsigned long number = words[ASKED_FILE];

	if (!vma)
		return false;
	vma->vm_start = words[ASKED_START];
	vma->vm_end = words[ASKED_END];
	vm_flags_init(vma, words[ASKED_FLAGS]);
	vma->vm_page_prot = vm_get_page_prot(words[ASKED_FLAGS]);
	vma_set_anonymous(vma);
	if (number) {
		vma->vm_file = get_file(&world.files[number - 1]);
		vma->vm_ops = &file_ops;
		vma->vm_pgoff = words[ASKED_PGOFF];
	}
	if (insert_vm_struct(world.parent, vma))
		return false;
	vm_stat_account(world.parent, words[ASKED_FLAGS], vma_pages(vma));
	return true;
}

/* As do_user_addr_fault() on a user's write: by the lock of the VMA alone. */
static bool write_to(unsigned long address)
{
	unsigned int flags = FAULT_FLAG_DEFAULT | FAULT_FLAG_WRITE | FAULT_FLAG_USER |
			     FAULT_FLAG_VMA_LOCK;
	struct vm_area_struct *vma = lock_vma_under_rcu(world.parent, address);
	vm_fault_t is;

	if (!vma)
		return false;
	is = handle_mm_fault(vma, address, flags, NULL);
	if (!(is & (VM_FAULT_RETRY | VM_FAULT_COMPLETED)))
		vma_end_read(vma);
	return !(is & (VM_FAULT_ERROR | VM_FAULT_RETRY));
}

/* Each page says where it is. */
static bool fill(const unsigned long *words)
{
	unsigned long at, end = words[ASKED_START] + words[ASKED_NR_ANON] * PAGE_SIZE;

	for (at = words[ASKED_START]; at < end; at += PAGE_SIZE)
		if (!write_to(at))
			return false;
	return true;
}

static bool make_parent(void)
{
	unsigned long i;

	current->mm = NULL;
	world.parent = mm_alloc();
	if (!world.parent)
		return false;
	/* Two CPUs run it: TLB flushes are what they are there. */
	for (i = 0; i < 2; i++)
		cpumask_set_cpu(i, mm_cpumask(world.parent));
	mmap_write_lock(world.parent);
	for (i = 0; i < world.request.nr_vmas; i++)
		if (!add_vma(asked(i)))
			return false;
	mmap_write_unlock(world.parent);
	current->mm = world.parent;
	current->active_mm = world.parent;
	for (i = 0; i < world.request.nr_vmas; i++)
		if (!fill(asked(i)))
			return false;
	return true;
}

/* A user of no power. */
static void become_user(void)
{
	static struct cred cred = { .user_ns = &init_user_ns };

	current->cred = &cred;
	current->real_cred = &cred;
}

static int prepare(const struct calling_request *request)
{
	BUILD_BUG_ON(NR_MM_COUNTERS != CALLING_NR_RSS);
	host_place_map(NODE_TABLE_PFN, (void *)NODE_MAP_ADDRESS);
	host_place_contents(NODE_TABLE_PFN, (void *)NODE_RAM_ADDRESS);
	highest_memmap_pfn = ULONG_MAX;
	transparent_hugepage_flags = 0;
	sysctl_overcommit_memory = OVERCOMMIT_ALWAYS;
	world.request = *request;
	memset(&world.task, 0, sizeof(world.task));
	calling_reset_waiting();
	calling_reset_ids();
	fault_error = 0;
	host_boot_node(request->nr_pages);
	become_user();
	calling_boot_caches();
	init_files();
	host_reset_flushes();
	return make_parent();
}

/* --- What is timed ----------------------------------------------------------- */

/* All that fork() does of memory. */
static int fork_now(void)
{
	host_reset_flushes();
	return calling_copy_mm(&world.task);
}

static bool may_write(const unsigned long *words)
{
	return words[ASKED_FLAGS] & VM_WRITE;
}

static void write_all(void)
{
	unsigned long i;

	for (i = 0; i < world.request.nr_vmas; i++)
		if (may_write(asked(i)) && !fill(asked(i)))
			fault_error = -EFAULT;
}

static void run(enum calling_operation operation)
{
	host_reset_flushes();
	switch (operation) {
	case CALLING_FORK:
		fault_error = calling_copy_mm(&world.task);
		break;
	case CALLING_FAULTS:
		write_all();
		break;
	case CALLING_EXIT:
		mmput(world.task.mm);
		world.task.mm = NULL;
		break;
	case CALLING_NR_OPERATIONS:
		WARN_ON(true);
		break;
	}
}

/* --- What came of it ----------------------------------------------------------- */

static void settle(void)
{
	lru_add_drain();
	/* What may be looked at under RCU waits as an object, and then as a slab. */
	do {
		calling_end_grace_period();
		calling_shrink_caches();
	} while (calling_nr_waiting());
}

static void read(struct calling_result *result)
{
	/* Locked pages wait with a reference for their list. */
	lru_add_drain();
	result->nr_flushes = host_flushes.nr;
	result->nr_waiting = calling_nr_waiting();
	result->committed = percpu_counter_sum(&vm_committed_as);
	result->error = fault_error;
	calling_read_files(result);
	calling_count_objects(result);
	host_read_node(&result->node);
}

static const struct calling_ops ops = {
	.layout = host_read_layout,
	.prepare = prepare,
	.fork = fork_now,
	.run = run,
	.settle = settle,
	.read_space = calling_read_space,
	.read = read,
};

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
	{ "sizeof.page", sizeof(struct page) },
	{ "sizeof.vm_area_struct", sizeof(struct vm_area_struct) },
	{ "VM_LOCKED", VM_LOCKED },
	{ "VM_LOCKONFAULT", VM_LOCKONFAULT },
	{ "VM_SOFTDIRTY", VM_SOFTDIRTY },
	{ }
};
