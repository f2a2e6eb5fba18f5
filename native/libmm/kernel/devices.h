/* SPDX-License-Identifier: GPL-2.0-only */
/* The computer's devices: a disk in memory, and the nodes as devices. */
#ifndef REAM_DEVICES_H
#define REAM_DEVICES_H

#define DISK_FOLDER "/disk"	/* where it is mounted */

void start_nodes(void);	/* before initcalls */
void start_disk(void);	/* behind them */
void say_distances(void);	/* hotplug.c: of nodes that are slow; before initcalls */

struct file;
struct folio;

/* What the disk has of a page of a folio; NULL: it is of no file there. */
const void *on_disk(const struct folio *folio, unsigned long page);

/* Have a file of that folder, just made and empty, on the disk; with so many pages. */
int put_on_disk(struct file *file, unsigned long nr_pages);

/* Have that file's pages in large folios, none of which is of a lower order. */
void make_large(struct file *file, unsigned int order);

/* Where a page of such a file is on it. */
void *page_on_disk(const struct inode *inode, pgoff_t index);

/* Swap to a file on the disk. @nr_pages: it is made with so many; 0: it is there already. */
long turn_swap_on(unsigned long nr_pages, long flags);
long turn_swap_off(void);

/* mapped.c: when and how the entries of a device's memory are made. */
enum mapped_how {
	MAPPED_AT_ONCE,	/* remap_pfn_range() */
	MAPPED_BY_FRAME,	/* by faults: vmf_insert_pfn() */
	MAPPED_MIXED,		/* by faults: each other page has no reference */
};

/* A device with so much memory; its file. */
int open_device(enum mapped_how how, unsigned long nr_pages);

/* NULL: it is no device, or has less. */
struct page *page_of_device(const struct file *file, pgoff_t index);
bool is_page_of_device(const struct page *page);

#endif
