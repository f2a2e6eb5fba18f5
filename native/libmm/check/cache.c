// SPDX-License-Identifier: GPL-2.0-only
/* Check the page cache: each folio is at its index, with the right xarray marks. */
#include <linux/backing-dev.h>
#include <linux/blk_types.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>
#include <linux/swapops.h>
#include "census.h"
#include "hosted.h"
#include "steps.h"

/* Count the swap slots of a shmem entry. A large entry has aligned, contiguous slots. */
static unsigned long count_slots(struct xa_state *xas, void *value, unsigned int number)
{
	const unsigned int order = xas_get_order(xas);
	swp_entry_t entry = radix_to_swp_entry(value);
	unsigned long i;

	if (swp_type(entry) >= MAX_SWAPFILES)	/* an error entry: swapin has failed */
		return 0;
	if ((xas->xa_index | swp_offset(entry)) & ((1UL << order) - 1))
		wrong("file %u, page %#lx: an entry of order %u names swap slot %lu",
		      number, xas->xa_index, order, swp_offset(entry));
	for (i = 0; i < 1UL << order; i++)
		if (swp_offset(entry) + i < MOST_SWAP_SLOTS)
			census.slot_entries[swp_offset(entry) + i]++;
	return 1UL << order;
}

static void check_marks(struct xa_state *xas, struct folio *folio, unsigned int number)
{
	bool is_dirty = xas_get_mark(xas, PAGECACHE_TAG_DIRTY);

	if (xas_get_mark(xas, PAGECACHE_TAG_WRITEBACK) != folio_test_writeback(folio))
		wrong("file %u, page %#lx: its mark of writeback is not as the folio's flag",
		      number, xas->xa_index);
	/* A dirty folio must be marked. The mark may outlast the flag once it is cleaned. */
	if (mapping_can_writeback(folio->mapping) && folio_test_dirty(folio) && !is_dirty)
		wrong("file %u, page %#lx is dirty, and not marked: it would never be written",
		      number, xas->xa_index);
}

/* info->alloced may be higher: clean pages may have been dropped since it was updated. */
static void check_shared_memory(struct inode *inode, unsigned int number, unsigned long nr_pages,
				unsigned long nr_swapped)
{
	const struct shmem_inode_info *info = SHMEM_I(inode);

	if (info->swapped != nr_swapped)
		wrong("file %u: %lu pages are counted as swapped, and %lu are",
		      number, info->swapped, nr_swapped);
	if (info->alloced < nr_pages + nr_swapped)
		wrong("file %u: %lu pages are counted as allocated, and %lu are",
		      number, info->alloced, nr_pages + nr_swapped);
	if (inode->i_blocks != info->alloced << (PAGE_SHIFT - SECTOR_SHIFT))
		wrong("file %u has %llu blocks, and %lu pages are counted as allocated",
		      number, (u64)inode->i_blocks, info->alloced);
	if (nr_swapped && list_empty(&info->swaplist))
		wrong("file %u has pages in swap, and swapoff() would not find it", number);
}

/* A shmem file may have pages beyond i_size only where fallocate() has allocated them. */
static unsigned long end_of(struct address_space *mapping)
{
	unsigned long end = DIV_ROUND_UP(i_size_read(mapping->host), PAGE_SIZE);

	return shmem_mapping(mapping) ? max(end, SHMEM_I(mapping->host)->fallocend) : ULONG_MAX;
}

static void check_mapping(struct address_space *mapping, unsigned int number)
{
	unsigned long nr_pages = 0, nr_swapped = 0, end = end_of(mapping);
	XA_STATE(xas, &mapping->i_pages, 0);
	struct folio *folio;

	xas_for_each(&xas, folio, ULONG_MAX) {
		if (xas.xa_index >= end)
			wrong("file %u has a page %#lx, and ends at %#lx",
			      number, xas.xa_index, end);
		if (xa_is_value(folio)) {
			if (shmem_mapping(mapping))
				nr_swapped += count_slots(&xas, folio, number);
			continue;
		}
		nr_pages += folio_nr_pages(folio);
		if (folio->mapping != mapping || folio->index != xas.xa_index)
			wrong("file %u has a folio at page %#lx that says it is page %#lx",
			      number, xas.xa_index, folio->index);
		else
			check_marks(&xas, folio, number);
	}
	if (mapping->nrpages != nr_pages)
		wrong("file %u: nrpages is %lu, and its cache has %lu",
		      number, mapping->nrpages, nr_pages);
	if (shmem_mapping(mapping))
		check_shared_memory(mapping->host, number, nr_pages, nr_swapped);
}

/* How many VMAs of a process map this file. */
static long nr_vmas(struct process *process, const struct file *file)
{
	VMA_ITERATOR(vmi, mm_of(process), 0);
	struct vm_area_struct *vma;
	long nr = 0;

	for_each_vma(vmi, vma)
		nr += vma->vm_file == file;
	return nr;
}

/* The file descriptor holds one reference to the file, and each VMA another one. */
static void check_references(struct user_file *file, unsigned int number)
{
	long nr = 2, other;	/* the descriptor, and ours */

	for (other = 0; other < MOST_PROCESSES; other++)
		if (process_of(other) && mm_of(process_of(other)))
			nr += nr_vmas(process_of(other), file->file);
	if (file_count(file->file) != nr)
		wrong("file %u has %ld references, and %ld VMAs and descriptors", number,
		      (long)file_count(file->file), nr);
}

/* --- shared anonymous memory, whose file is the kernel's and unknown to the program --- */

static struct address_space *seen[MOST_FILES];
static int nr_seen;

static bool is_known(struct address_space *mapping)
{
	int i;

	for (i = 0; i < MOST_FILES; i++)
		if (file_of(i) && file_of(i)->file && file_of(i)->file->f_mapping == mapping)
			return true;
	for (i = 0; i < nr_seen; i++)
		if (seen[i] == mapping)
			return true;
	return nr_seen == MOST_FILES;
}

static void check_unnamed(struct process *process)
{
	VMA_ITERATOR(vmi, mm_of(process), 0);
	struct vm_area_struct *vma;

	for_each_vma(vmi, vma) {
		if (!vma->vm_file || is_known(vma->vm_file->f_mapping))
			continue;
		seen[nr_seen++] = vma->vm_file->f_mapping;
		check_mapping(vma->vm_file->f_mapping, MOST_FILES);
	}
}

void check_caches(void)
{
	unsigned int number;

	for (number = 0; number < MOST_FILES; number++) {
		struct user_file *file = file_of(number);

		if (!file || !file->file)
			continue;
		check_mapping(file->file->f_mapping, number);
		check_references(file, number);
	}
	nr_seen = 0;
	for (number = 0; number < MOST_PROCESSES; number++)
		if (process_of(number) && mm_of(process_of(number)))
			check_unnamed(process_of(number));
}
