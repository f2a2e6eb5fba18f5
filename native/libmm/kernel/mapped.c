// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices whose memory processes map. It has no address_space, so page table
 * entries may be the only references to it.
 */
#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include "devices.h"
#include "hosted.h"
#include "trees.h"

#define MOST_DEVICES 8
#define MOST_DEVICE_PAGES 1024	/* limit of one allocation */

/**
 * struct memory - memory of a device
 * @pages: Its pages, which are contiguous.
 * @nr: Number of pages.
 * @how: How processes map them.
 */
static struct memory {
	struct page *pages;
	unsigned long nr;
	enum mapped_how how;
} devices[MOST_DEVICES];

static unsigned int nr_devices;

static const struct file_operations operations;

struct page *page_of_device(const struct file *file, pgoff_t index)
{
	const struct memory *memory = file->private_data;

	return file->f_op == &operations && index < memory->nr ? memory->pages + index : NULL;
}

bool is_page_of_device(const struct page *page)
{
	unsigned int i;

	for (i = 0; i < nr_devices; i++)
		if (page >= devices[i].pages && page < devices[i].pages + devices[i].nr)
			return true;
	return false;
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	const struct memory *memory = vmf->vma->vm_file->private_data;
	struct page *page = page_of_device(vmf->vma->vm_file, vmf->pgoff);

	if (!page)
		return VM_FAULT_SIGBUS;
	if (memory->how == MAPPED_BY_FRAME)
		return vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(page));
	if (vmf->pgoff % 2)
		return vmf_insert_mixed(vmf->vma, vmf->address, page_to_pfn_t(page));
	return vmf_insert_page(vmf->vma, vmf->address, page);
}

static const struct vm_operations_struct faults = { .fault = fault };

/* Like most drivers, refuse private mappings. */
static int map(struct file *file, struct vm_area_struct *vma)
{
	const struct memory *memory = file->private_data;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_pgoff + vma_pages(vma) > memory->nr)
		return -EINVAL;
	if (memory->how == MAPPED_AT_ONCE)
		return remap_pfn_range(vma, vma->vm_start,
				       page_to_pfn(memory->pages) + vma->vm_pgoff,
				       vma->vm_end - vma->vm_start, vma->vm_page_prot);
	vm_flags_set(vma, VM_DONTEXPAND | (memory->how == MAPPED_BY_FRAME ?
					   VM_PFNMAP | VM_IO : VM_MIXEDMAP));
	vma->vm_ops = &faults;
	return 0;
}

static const struct file_operations operations = { .mmap = map };

int open_device(enum mapped_how how, unsigned long nr_pages)
{
	struct memory *memory = &devices[nr_devices];
	void *at;

	if (nr_devices == MOST_DEVICES || !nr_pages || nr_pages > MOST_DEVICE_PAGES)
		return -ENOSPC;
	at = alloc_pages_exact(nr_pages << PAGE_SHIFT, GFP_KERNEL | __GFP_ZERO);
	if (!at)
		return -ENOMEM;
	*memory = (struct memory){ virt_to_page(at), nr_pages, how };
	nr_devices++;
	return anon_inode_getfd("memory", &operations, memory, O_RDWR);
}
