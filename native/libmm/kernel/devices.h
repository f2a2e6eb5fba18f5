/* SPDX-License-Identifier: GPL-2.0-only */
/* The computer's devices: a disk in memory, and the nodes as devices. */
#ifndef REAM_DEVICES_H
#define REAM_DEVICES_H

#define DISK_FOLDER "/disk"	/* mount point of the disk */

void start_nodes(void);	/* before initcalls */
void start_disk(void);	/* after initcalls */
void say_distances(void);	/* hotplug.c: report slow nodes; before initcalls */

struct file;
struct folio;

/* Data of a page of a folio on the disk. NULL if its file is not on the disk. */
const void *on_disk(const struct folio *folio, unsigned long page);

/* Put a new, empty file of that folder on the disk, with this many pages. */
int put_on_disk(struct file *file, unsigned long nr_pages);

/* Make the page cache of a file use large folios, of at least this order. */
void make_large(struct file *file, unsigned int order);

/* Address of a page of such a file on the disk. */
void *page_on_disk(const struct inode *inode, pgoff_t index);

/* Swap to a file on the disk. It is created with @nr_pages, or exists already if that is 0. */
long turn_swap_on(unsigned long nr_pages, long flags);
long turn_swap_off(void);

/* mapped.c: when and how a device maps its memory. */
enum mapped_how {
	MAPPED_AT_ONCE,	/* remap_pfn_range() */
	MAPPED_BY_FRAME,	/* by faults: vmf_insert_pfn() */
	MAPPED_MIXED,		/* by faults: every second page takes no reference */
};

/* Create a device with this much memory. Return: a file descriptor, or an error. */
int open_device(enum mapped_how how, unsigned long nr_pages);

/* The page of a device at an index. NULL if the file is no device or is shorter. */
struct page *page_of_device(const struct file *file, pgoff_t index);
bool is_page_of_device(const struct page *page);

#endif
