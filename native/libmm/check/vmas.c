// SPDX-License-Identifier: GPL-2.0-only
/*
 * Check VMAs: their own fields, the trees that must find them, and the counters
 * that sum them up. Source: mlock(2), userfaultfd(2), the comments on struct
 * vm_area_struct, struct anon_vma and struct address_space, and
 * Documentation/mm/overcommit-accounting.rst.
 */
#include <linux/fcntl.h>
#include <linux/hugetlb.h>
#include <linux/memfd.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/rmap.h>
#include <linux/shmem_fs.h>
#include <linux/userfaultfd_k.h>
#include "census.h"
#include "hosted.h"
#include "steps.h"
#include "trees.h"

#define MOST_FAMILIES 1024

/* An anon_vma found in the chain of a VMA, and how many found ones have it as their parent. */
static struct family {
	struct anon_vma *anon_vma;
	unsigned long nr_children;
} families[MOST_FAMILIES];
static unsigned int nr_families;

bool promises_may_be_lost;

/* --- the fields of one VMA ---------------------------------------------- */

static void check_lock(struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_LOCKONFAULT && !(vma->vm_flags & VM_LOCKED))
		wrong("%#lx is locked on fault, and not locked", vma->vm_start);
	if (vma->vm_flags & VM_LOCKED &&
	    (vma->vm_flags & (VM_SPECIAL | VM_DROPPABLE) || is_vm_hugetlb_page(vma)))
		wrong("%#lx is locked, and its pages are none that can be: %#lx",
		      vma->vm_start, vma->vm_flags);
}

/* New entries get vm_page_prot, so it must not permit writes that have to fault first. */
static void check_protection(struct vm_area_struct *vma)
{
	unsigned long is = pgprot_val(vma->vm_page_prot);
	unsigned long most = pgprot_val(vm_get_page_prot(vma->vm_flags));

	if (is & ~most & (_PAGE_PRESENT | _PAGE_RW | _PAGE_USER) ||
	    (is & (_PAGE_RW | _PAGE_PRESENT)) == (_PAGE_RW | _PAGE_PRESENT) &&
	    !(vma->vm_flags & VM_SHARED))
		wrong("%#lx gives its new entries %#lx, where its flags allow %#lx",
		      vma->vm_start, is, most);
}

/* Count the VMAs with this name. Fork and splitting a VMA share it. */
static unsigned int nr_named(const struct anon_vma_name *name)
{
	struct vm_area_struct *vma;
	unsigned int nr = 0;
	long number;

	for (number = 0; number < MOST_PROCESSES; number++) {
		if (!process_of(number) || !mm_of(process_of(number)))
			continue;
		VMA_ITERATOR(vmi, mm_of(process_of(number)), 0);
		for_each_vma(vmi, vma)
			nr += vma->anon_name == name;
	}
	return nr;
}

static void check_itself(struct process *process, struct vm_area_struct *vma)
{
	const struct mempolicy *policy = vma->vm_policy;
	const struct userfaultfd_ctx *watch = vma->vm_userfaultfd_ctx.ctx;

	check_lock(vma);
	check_protection(vma);
	if (vma->vm_mm != mm_of(process))
		wrong("%#lx is in a tree of process %d, and says it is another's",
		      vma->vm_start, process->number);
	if (!watch != !(vma->vm_flags & __VM_UFFD_FLAGS))
		wrong("%#lx is watched by its flags or by a userfaultfd, and not by both",
		      vma->vm_start);
	/* UFFDIO_COPY and others fail while it is set. No call is in progress here. */
	if (watch && atomic_read(&watch->mmap_changing))
		wrong("%#lx is watched by a userfaultfd that waits for %d changes of mappings",
		      vma->vm_start, atomic_read(&watch->mmap_changing));
	if (policy && atomic_read(&policy->refcnt) != 1)
		wrong("%#lx has a policy of its own, and %d references to it are counted",
		      vma->vm_start, atomic_read(&policy->refcnt));
	if (vma->anon_name && kref_read(&vma->anon_name->kref) != nr_named(vma->anon_name))
		wrong("%#lx has a name with %u references, and %u VMAs have it", vma->vm_start,
		      kref_read(&vma->anon_name->kref), nr_named(vma->anon_name));
	/* The first fault will set the anon_vma and fix the index of its pages. */
	if (vma_is_anonymous(vma) && !vma->vm_file && !vma->anon_vma && !process->was_wiped &&
	    linear_anon_page_index(vma, vma->vm_start) != vma->vm_start >> PAGE_SHIFT)
		wrong("%#lx has no page yet, and the first is to have the index %#lx",
		      vma->vm_start, linear_anon_page_index(vma, vma->vm_start));
}

/* --- rmap from an anonymous page ----------------------------------------- */

static bool is_found(const struct anon_vma_chain *link, pgoff_t index)
{
	struct anon_vma_chain *other;

	anon_rmap_tree_foreach(other, link->anon_vma, index, index)
		if (other == link)
			return true;
	return false;
}

/* Count each anon_vma only once: at the first link in its interval tree. */
static void count_family(const struct anon_vma_chain *link)
{
	struct anon_vma *anon_vma = link->anon_vma;
	struct anon_vma_chain *other;
	unsigned long nr = 0;

	anon_rmap_tree_foreach(other, anon_vma, 0, ULONG_MAX) {
		if (!nr && other != link)
			return;
		break;
	}
	anon_rmap_tree_foreach(other, anon_vma, 0, ULONG_MAX)
		nr += other->vma->anon_vma == anon_vma;
	if (anon_vma->num_active_vmas != nr)
		wrong("%#lx: num_active_vmas of an anon_vma is %lu, and %lu VMAs use it",
		      link->vma->vm_start, anon_vma->num_active_vmas, nr);
	if (nr_families < MOST_FAMILIES)
		families[nr_families] = (struct family){ anon_vma };
	nr_families++;
}

static void check_families(void)
{
	unsigned int i, j;

	for (i = 0; i < nr_families && nr_families <= MOST_FAMILIES; i++)
		for (j = 0; j < nr_families; j++)
			if (families[j].anon_vma == families[i].anon_vma->parent)
				families[j].nr_children++;
	for (i = 0; i < nr_families && nr_families <= MOST_FAMILIES; i++)
		if (families[i].anon_vma->num_children != families[i].nr_children)
			wrong("num_children of an anon_vma is %lu, and %lu are there",
			      families[i].anon_vma->num_children, families[i].nr_children);
	nr_families = 0;
}

static void check_chain(struct vm_area_struct *vma)
{
	struct anon_vma_chain *link;
	bool has_own = false;

	list_for_each_entry(link, &vma->anon_vma_chain, same_vma) {
		has_own |= link->anon_vma == vma->anon_vma;
		if (link->vma != vma)
			wrong("%#lx has a link of another VMA", vma->vm_start);
		else if (!is_found(link, linear_anon_page_index(vma, vma->vm_start)) ||
			 !is_found(link, linear_anon_page_index(vma, vma->vm_end - PAGE_SIZE)))
			wrong("%#lx is not found by the index of its pages in an anon_vma of it",
			      vma->vm_start);
		else if (vma->anon_vma && link->anon_vma->root != vma->anon_vma->root)
			wrong("%#lx has anon_vmas of two families", vma->vm_start);
		else
			count_family(link);
	}
	if (has_own != !!vma->anon_vma || (!has_own && !list_empty(&vma->anon_vma_chain)))
		wrong("%#lx has an anon_vma, or a chain of them, and not both", vma->vm_start);
}

/* --- rmap from a page of a file ------------------------------------------ */

static bool is_mapped_by(struct address_space *mapping, const struct vm_area_struct *vma,
			 pgoff_t index)
{
	struct vm_area_struct *other;

	mapping_rmap_tree_foreach(other, mapping, index, index)
		if (other == vma)
			return true;
	return false;
}

static void check_mappings_of(struct file *file)
{
	struct address_space *mapping = file->f_mapping;
	long seals = memfd_fcntl(file, F_GET_SEALS, 0);
	struct vm_area_struct *vma;
	long nr = 0;

	mapping_rmap_tree_foreach(vma, mapping, 0, ULONG_MAX) {
		if (vma_lookup(vma->vm_mm, vma->vm_start) != vma)
			wrong("a file finds a VMA at %#lx that its process has not",
			      vma->vm_start);
		nr += (vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == (VM_SHARED | VM_MAYWRITE);
	}
	if (seals > 0 && seals & F_SEAL_WRITE)
		nr = nr ?: -1;
	if (atomic_read(&mapping->i_mmap_writable) != nr ||
	    (nr > 0 && seals > 0 && seals & F_SEAL_WRITE))
		wrong("%d mappings of a file are counted as writable, and %ld are, with seals %ld",
		      atomic_read(&mapping->i_mmap_writable), nr, seals);
}

static void check_mapped(struct vm_area_struct *vma)
{
	struct address_space *mapping = vma->vm_file->f_mapping;

	if (!is_mapped_by(mapping, vma, vma->vm_pgoff) ||
	    !is_mapped_by(mapping, vma, vma->vm_pgoff + vma_pages(vma) - 1))
		wrong("%#lx is not found by its pages in the tree of its file", vma->vm_start);
}

static void check_files(void)
{
	long number;

	for (number = 0; number < MOST_FILES; number++)
		if (file_of(number) && file_of(number)->file)
			check_mappings_of(file_of(number)->file);
}

/* --- totals per process, and over all processes -------------------------- */

static void compare_kind(const struct process *process, const char *name, unsigned long is,
			 unsigned long counted)
{
	if (is != counted)
		wrong("process %d: %s is %lu, and VMAs have %lu pages of that kind",
		      process->number, name, is, counted);
}

/* Documentation/filesystems/proc.rst: VmData, VmExe with VmLib, and VmStk. */
static void check_kinds(struct process *process)
{
	unsigned long data = 0, exec = 0, stack = 0;
	struct mm_struct *mm = mm_of(process);
	struct vm_area_struct *vma;

	VMA_ITERATOR(vmi, mm, 0);

	for_each_vma(vmi, vma) {
		unsigned long flags = vma->vm_flags;

		if ((flags & (VM_EXEC | VM_WRITE | VM_STACK)) == VM_EXEC)
			exec += vma_pages(vma);
		else if (flags & VM_STACK)
			stack += vma_pages(vma);
		else if ((flags & (VM_WRITE | VM_SHARED)) == VM_WRITE)
			data += vma_pages(vma);
	}
	compare_kind(process, "data_vm", mm->data_vm, data);
	compare_kind(process, "exec_vm", mm->exec_vm, exec);
	compare_kind(process, "stack_vm", mm->stack_vm, stack);
}

static long check_process(struct process *process)
{
	VMA_ITERATOR(vmi, mm_of(process), 0);
	struct vm_area_struct *vma;
	long accounted = 0;

	for_each_vma(vmi, vma) {
		if (vmi.mas.index != vma->vm_start || vmi.mas.last != vma->vm_end - 1)
			wrong("%#lx to %#lx is %#lx to %#lx in the tree of process %d",
			      vma->vm_start, vma->vm_end, vmi.mas.index, vmi.mas.last + 1,
			      process->number);
		check_itself(process, vma);
		check_chain(vma);
		if (vma->vm_file)
			check_mapped(vma);
		accounted += vma->vm_flags & VM_ACCOUNT ? vma_pages(vma) : 0;
	}
	check_kinds(process);
	return accounted;
}

/* Pages that shmem inodes account: their whole size, or what they use if VM_NORESERVE. */
static long nr_accounted_by_files(struct file_system_type *tmpfs)
{
	struct super_block *super;
	struct inode *inode;
	long nr = 0;

	hlist_for_each_entry(super, &tmpfs->fs_supers, s_instances)
		list_for_each_entry(inode, &super->s_inodes, i_sb_list)
			nr += is_shmem_reserved(inode) ? PAGE_ALIGN(inode->i_size) >> PAGE_SHIFT :
							 SHMEM_I(inode)->alloced;
	return nr;
}

void check_vmas(void)
{
	static struct file_system_type *tmpfs;
	static long lost;
	long number, accounted;

	tmpfs = tmpfs ?: get_fs_type("tmpfs");
	accounted = nr_accounted_by_files(tmpfs);
	for (number = 0; number < MOST_PROCESSES; number++)
		if (process_of(number) && mm_of(process_of(number)))
			accounted += check_process(process_of(number));
	check_families();
	check_files();
	if (promises_may_be_lost)
		lost = percpu_counter_sum(&vm_committed_as) - accounted;
	promises_may_be_lost = false;
	if (percpu_counter_sum(&vm_committed_as) != accounted + lost)
		wrong("Committed_AS is %lld pages, and VMAs and files have %ld",
		      percpu_counter_sum(&vm_committed_as), accounted + lost);
}
