// SPDX-License-Identifier: GPL-2.0-only
/* A disk in memory, used for files and swap, and the device objects of nodes. */
#include <linux/backing-dev.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/falloc.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/init_syscalls.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/node.h>
#include <linux/pagemap.h>
#include <linux/ramfs.h>
#include <linux/swap.h>
#include <linux/workqueue.h>
#include <linux/writeback.h>
#include <asm/ptrace.h>
#include "../fs/internal.h"
#include "swap.h"
#include "devices.h"
#include "hosted.h"
#include "steps.h"
#include "trees.h"

static struct node device_nodes[MOST_NODES];
struct node *node_devices[MAX_NUMNODES] = {
	&device_nodes[0], &device_nodes[1], &device_nodes[2], &device_nodes[3],
};

static const struct kobj_type plain;	/* a device without a release */

void start_nodes(void)
{
	unsigned int node;

	for (node = 0; node < MOST_NODES; node++) {
		kobject_init(&device_nodes[node].dev.kobj, &plain);
		kobject_set_name(&device_nodes[node].dev.kobj, "node%u", node);
	}
}

/* A device consists only of its name and its reference count. */
struct device *device_create(const struct class *class, struct device *parent, dev_t number,
			     void *data, const char *format, ...)
{
	struct device *device = kzalloc(sizeof(*device), GFP_KERNEL);
	va_list arguments;

	HOST_STUB("custom");
	if (!device)
		return ERR_PTR(-ENOMEM);
	kobject_init(&device->kobj, &plain);
	dev_set_drvdata(device, data);
	va_start(arguments, format);
	kobject_set_name_vargs(&device->kobj, format, arguments);
	va_end(arguments);
	return device;
}

void device_unregister(struct device *device)
{
	HOST_STUB("custom");
	kfree_const(device->kobj.name);
	kfree(device);
}

struct device *get_device(struct device *device)
{
	HOST_STUB("stubbed");
	return device;
}

/* --- the disk ---------------------------------------------------------- */

static char *disk;
static struct request_queue queue;
static const struct block_device_operations operations;
static struct gendisk gendisk = { .queue = &queue, .fops = &operations };
static struct block_device disk_device = { .bd_disk = &gendisk, .bd_queue = &queue };
/* The part of the disk that is a swap device, from bd_start_sect on. */
static struct block_device partition = { .bd_disk = &gendisk, .bd_queue = &queue };

static struct bio_list requests = BIO_EMPTY_LIST;

static void end_requests(struct work_struct *work)
{
	struct bio *bio;

	while ((bio = bio_list_pop(&requests))) {
		bio->bi_status = BLK_STS_OK;
		bio_endio(bio);
	}
}

static DECLARE_WORK(requests_end, end_requests);

/*
 * Copy the data immediately. Unless the disk is synchronous, the request
 * completes when the task sleeps, or at the end of the step.
 */
void submit_bio(struct bio *bio)
{
	char *at = disk + ((bio->bi_bdev->bd_start_sect + bio->bi_iter.bi_sector) << SECTOR_SHIFT);
	struct bvec_iter iter;
	struct bio_vec vec;

	HOST_STUB("custom");
	bio_for_each_segment(vec, bio, iter) {
		void *memory = page_address(vec.bv_page) + vec.bv_offset;

		if (op_is_write(bio_op(bio)))
			memcpy(at, memory, vec.bv_len);
		else
			memcpy(memory, at, vec.bv_len);
		at += vec.bv_len;
	}
	bio_list_add(&requests, bio);
	if (queue.limits.features & BLK_FEAT_SYNCHRONOUS)
		end_requests(NULL);
	else
		schedule_work(&requests_end);
}

int blk_status_to_errno(blk_status_t status)
{
	HOST_STUB("custom");
	return status ? -EIO : 0;
}

/* --- files on the disk: ramfs inodes whose pages are written to the disk --- */

#define DISK_PAGES (1UL << 18)		/* size of the disk */

#define LEAST_PAGES (1UL << 12)		/* minimum extent of a file, which may grow */

static unsigned long nr_used_pages;

/* The contiguous extent of a file on the disk. */
struct extent {
	unsigned long first, nr;
};

static struct extent *extent_of(const struct inode *inode)
{
	return inode->i_private;
}

static bool has_room(const struct inode *inode, loff_t end)
{
	return end <= extent_of(inode)->nr << PAGE_SHIFT;
}

static sector_t sector_of(const struct inode *inode, pgoff_t index)
{
	return (extent_of(inode)->first + index) << (PAGE_SHIFT - SECTOR_SHIFT);
}

void *page_on_disk(const struct inode *inode, pgoff_t index)
{
	return disk + (sector_of(inode, index) << SECTOR_SHIFT);
}

static void ended(struct bio *bio)
{
	struct folio_iter iter;

	bio_for_each_folio_all(iter, bio)
		if (op_is_write(bio_op(bio)))
			folio_end_writeback(iter.folio);
		else
			folio_end_read(iter.folio, true);
	bio_put(bio);
}

static void submit(struct folio *folio, blk_opf_t operation)
{
	struct bio *bio = bio_alloc(&disk_device, 1, operation, GFP_NOIO);

	bio->bi_iter.bi_sector = sector_of(folio->mapping->host, folio->index);
	bio_add_folio_nofail(bio, folio, folio_size(folio), 0);
	bio->bi_end_io = ended;
	submit_bio(bio);
}

static int read_folio(struct file *file, struct folio *folio)
{
	submit(folio, REQ_OP_READ);
	return 0;
}

static void read_ahead(struct readahead_control *control)
{
	struct folio *folio;

	while ((folio = readahead_folio(control)))
		submit(folio, REQ_OP_READ);
}

static int write_pages(struct address_space *mapping, struct writeback_control *control)
{
	struct folio *folio = NULL;
	int error = 0;

	while ((folio = writeback_iter(mapping, control, folio, &error))) {
		folio_start_writeback(folio);
		folio_unlock(folio);
		submit(folio, REQ_OP_WRITE);
	}
	return error;
}

static bool has_large_folios(const struct address_space *mapping);

/* Attach private data to a folio that is written, as ifs_alloc() in fs/iomap/buffered-io.c. */
static void attach_blocks(struct folio *folio)
{
	struct address_space *mapping = folio->mapping;

	if (folio_order(folio) > mapping_min_folio_order(mapping) && !folio_test_private(folio))
		folio_attach_private(folio, mapping->host);
}

/* FGP flags for a write: those of write_begin_get_folio(), which has the kiocb if any. */
static fgf_t how_to_write(writer_t writer)
{
#ifdef HAVE_WRITE_BEGIN_OF_KIOCB
	return FGP_WRITEBEGIN |
	       (writer && writer->ki_flags & IOCB_DONTCACHE ? FGP_DONTCACHE : 0);
#else
	return FGP_WRITEBEGIN;
#endif
}

static int begin_write(writer_t writer, struct address_space *mapping, loff_t at,
		       unsigned int bytes, struct folio **result, void **data)
{
	const bool is_large = has_large_folios(mapping);
	struct folio *folio = __filemap_get_folio(mapping, at >> PAGE_SHIFT, how_to_write(writer) |
						  (is_large ? fgf_set_order(bytes) : 0),
						  mapping_gfp_mask(mapping));

	if (IS_ERR(folio))
		return PTR_ERR(folio);
	*result = folio;
	if (is_large)
		attach_blocks(folio);
	if (folio_test_uptodate(folio) || bytes == folio_size(folio))
		return 0;
	submit(folio, REQ_OP_READ);
	folio_lock(folio);
	return 0;
}

static int end_write(writer_t writer, struct address_space *mapping, loff_t at,
		     unsigned int bytes, unsigned int copied, struct folio *folio, void *data)
{
	struct inode *inode = mapping->host;

	folio_mark_uptodate(folio);
	if (at + copied > inode->i_size)
		i_size_write(inode, at + copied);
	folio_mark_dirty(folio);
	folio_unlock(folio);
	folio_put(folio);
	return copied;
}

#define NR_UNUSABLE 5	/* pages at the end of a file with holes, in a partial last block */

static bool has_holes, is_device;	/* properties of the swap area */

/* Activate a swap file. It is one extent, because its pages are contiguous on the disk. */
static int activate(struct swap_info_struct *swap, struct file *file, sector_t *span)
{
	unsigned long nr_pages = i_size_read(file_inode(file)) >> PAGE_SHIFT;

	if (has_holes) {	/* as generic_swapfile_activate() does */
		nr_pages -= NR_UNUSABLE;
		swap->max = nr_pages;
		swap->pages = nr_pages - 1;
#ifndef HAVE_SWAP_TABLE
		swap->highest_bit = nr_pages - 1;
#endif
	}
	*span = nr_pages;
	return add_swap_extent(swap, 0, nr_pages,
			       sector_of(file_inode(file), 0) >> (PAGE_SHIFT - SECTOR_SHIFT));
}

static const struct address_space_operations disk_operations = {
	.read_folio = read_folio,
	.readahead = read_ahead,
	.writepages = write_pages,
	.dirty_folio = filemap_dirty_folio,
	.write_begin = begin_write,
	.write_end = end_write,
	.migrate_folio = filemap_migrate_folio,
	.swap_activate = activate,
};

/* --- files with large folios, such as those of XFS ----------------------- */

/* fs/iomap/buffered-io.c: iomap_release_folio() */
static bool release_folio(struct folio *folio, gfp_t flags)
{
	if (folio_test_dirty(folio))
		return false;
	folio_detach_private(folio);
	return true;
}

/* fs/iomap/buffered-io.c: iomap_invalidate_folio() */
static void invalidate_folio(struct folio *folio, size_t at, size_t bytes)
{
	if (at || bytes != folio_size(folio))
		return;
	folio_cancel_dirty(folio);
	folio_detach_private(folio);
}

/* fs/iomap/buffered-io.c: iomap_dirty_folio(). Only files with a minimum order do this. */
static bool dirty_folio(struct address_space *mapping, struct folio *folio)
{
	if (mapping_min_folio_order(mapping))
		attach_blocks(folio);
	return filemap_dirty_folio(mapping, folio);
}

static const struct address_space_operations large_operations = {
	.read_folio = read_folio,
	.readahead = read_ahead,
	.writepages = write_pages,
	.dirty_folio = dirty_folio,
	.write_begin = begin_write,
	.write_end = end_write,
	.migrate_folio = filemap_migrate_folio,
	.release_folio = release_folio,
	.invalidate_folio = invalidate_folio,
};

static bool has_large_folios(const struct address_space *mapping)
{
	return mapping->a_ops == &large_operations;
}

static void forget_on_disk(struct inode *inode, loff_t at, loff_t end)
{
	if (at < end)
		memset(page_on_disk(inode, at >> PAGE_SHIFT), 0, end - at);
}

static int set_attributes(struct mnt_idmap *map, struct dentry *dentry, struct iattr *its)
{
	struct inode *inode = d_inode(dentry);
	loff_t end = i_size_read(inode);
	int error;

	if (its->ia_valid & ATTR_SIZE && !has_room(inode, its->ia_size))
		return -EFBIG;
	error = simple_setattr(map, dentry, its);
	if (!error && its->ia_valid & ATTR_SIZE)
		forget_on_disk(inode, its->ia_size, end);
	return error;
}

static long allocate(struct file *file, int mode, loff_t at, loff_t bytes)
{
	struct inode *inode = file_inode(file);

	if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE))
		return -EOPNOTSUPP;
	if (!(mode & FALLOC_FL_PUNCH_HOLE) && !has_room(inode, at + bytes))
		return -ENOSPC;
	inode_lock(inode);
	if (mode & FALLOC_FL_PUNCH_HOLE) {
		filemap_invalidate_lock(inode->i_mapping);
		truncate_pagecache_range(inode, at, at + bytes - 1);
		forget_on_disk(inode, at, min(at + bytes, i_size_read(inode)));
		filemap_invalidate_unlock(inode->i_mapping);
	} else if (!mode && at + bytes > i_size_read(inode)) {
		i_size_write(inode, at + bytes);
	}
	inode_unlock(inode);
	return 0;
}

static ssize_t write_file(struct kiocb *iocb, struct iov_iter *from)
{
	if (!has_room(file_inode(iocb->ki_filp), iocb->ki_pos + iov_iter_count(from)))
		return -ENOSPC;
	return generic_file_write_iter(iocb, from);
}

static int sync_file(struct file *file, loff_t at, loff_t end, int data_only)
{
	return file_write_and_wait_range(file, at, end);
}

#ifndef FOP_DONTCACHE
#define FOP_DONTCACHE 0
#endif

static const struct file_operations disk_file_operations = {
	.fop_flags = FOP_DONTCACHE,
	.read_iter = generic_file_read_iter,
	.write_iter = write_file,
	.mmap = generic_file_mmap,
	.fsync = sync_file,
	.splice_read = filemap_splice_read,
	.splice_write = iter_file_splice_write,
	.llseek = generic_file_llseek,
	.fallocate = allocate,
};

static const struct inode_operations disk_inode_operations = {
	.setattr = set_attributes,
	.getattr = simple_getattr,
};

void make_large(struct file *file, unsigned int order)
{
	struct address_space *mapping = file_inode(file)->i_mapping;

	mapping->a_ops = &large_operations;
	mapping_set_folio_min_order(mapping, order);
}

const void *on_disk(const struct folio *folio, unsigned long page)
{
	if (!folio->mapping || folio_test_anon(folio) ||
	    (folio->mapping->a_ops != &disk_operations && !has_large_folios(folio->mapping)))
		return NULL;
	return page_on_disk(folio->mapping->host, folio->index + page);
}

static int begin_mount(struct fs_context *context)
{
	return ramfs_init_fs_context(context);
}

static struct file_system_type disk_file_system = {
	.name = "disk",
	.init_fs_context = begin_mount,
	.kill_sb = kill_litter_super,
};

/* Convert a ramfs file into one whose pages are written to the disk and can be reclaimed. */
int put_on_disk(struct file *file, unsigned long nr_pages)
{
	struct inode *inode = file_inode(file);
	/* The last folio may extend beyond the end of the file. */
	unsigned long room = max(LEAST_PAGES, round_up(nr_pages, HPAGE_PMD_NR));
	static struct extent extents[DISK_PAGES / LEAST_PAGES];
	static unsigned int nr_extents;

	if (nr_used_pages + room > DISK_PAGES)
		return -ENOSPC;
	extents[nr_extents] = (struct extent){ nr_used_pages, room };
	inode->i_private = &extents[nr_extents++];
	host_make_present(disk + (nr_used_pages << PAGE_SHIFT), nr_pages << PAGE_SHIFT);
	nr_used_pages += room;
	inode->i_op = &disk_inode_operations;
	/* Replace the operations of ramfs, whose fsync() does nothing. */
	inode->i_fop = &disk_file_operations;
	file->f_op = &disk_file_operations;
	file->f_mode |= FMODE_NOWAIT;
	inode->i_mapping->a_ops = &disk_operations;
	clear_bit(AS_UNEVICTABLE, &inode->i_mapping->flags);
	mapping_set_gfp_mask(inode->i_mapping, GFP_HIGHUSER_MOVABLE);
	mapping_set_large_folios(inode->i_mapping);
	/* Writeback skips unhashed inodes, and ramfs does not hash its inodes. */
	insert_inode_hash(inode);
	i_size_write(inode, nr_pages << PAGE_SHIFT);
	return 0;
}

void start_disk(void)
{
	struct super_block *super;
	struct path path;

	disk = host_alloc(DISK_PAGES << PAGE_SHIFT);
	disk_device.bd_nr_sectors = DISK_PAGES << (PAGE_SHIFT - SECTOR_SHIFT);
	if (register_filesystem(&disk_file_system) || init_mkdir(DISK_FOLDER, 0700) ||
	    kern_path(DISK_FOLDER, 0, &path) || path_mount("disk", &path, "disk", 0, NULL))
		give_up("the disk cannot be mounted");
	path_put(&path);
	if (kern_path(DISK_FOLDER, 0, &path))
		give_up("the disk is not where it was mounted");
	super = path.mnt->mnt_sb;
	super->s_bdev = &disk_device;
	if (super_setup_bdi(super))
		give_up("the disk has no writeback");
	path_put(&path);
}

/* --- swap to a file on the disk ---------------------------------------- */

SYSTEM_CALL(swapon);
SYSTEM_CALL(swapoff);

#define SWAP_FILE DISK_FOLDER "/swap"

/* The only block device that is ever opened is the swap device. */
struct block_device *I_BDEV(struct inode *inode)
{
	HOST_STUB("custom");
	return &partition;
}

static const char swap_file[] = SWAP_FILE;

/* Create the swap file and write its header, as mkswap(8) does. */
static int make_swap_file(unsigned long nr_pages)
{
	struct file *file = filp_open(SWAP_FILE, O_RDWR | O_CREAT, 0600);
	static union swap_header header;
	loff_t at = 0;
	ssize_t written;
	int error;

	if (IS_ERR(file))
		return PTR_ERR(file);
	error = put_on_disk(file, nr_pages);
	header.info.version = 1;
	header.info.last_page = nr_pages - 1;
	header.info.nr_badpages = has_holes && is_device ? 2 : 0;	/* a file has none */
	header.info.badpages[0] = 7;
	header.info.badpages[1] = nr_pages - 2;
	memcpy(header.magic.magic, "SWAPSPACE2", 10);
	written = error ?: kernel_write(file, &header, sizeof(header), &at);
	if (is_device) {
		partition.bd_start_sect = sector_of(file_inode(file), 0);
		file_inode(file)->i_mode = S_IFBLK | 0600;
	}
	__fput_sync(file);
	return written == sizeof(header) ? 0 : written < 0 ? written : -EIO;
}

long turn_swap_on(unsigned long nr_pages, long flags)
{
	const struct pt_regs regs = { .di = (unsigned long)swap_file };
	int error = 0;

	if (nr_pages) {
		queue.limits.features = flags & 1 ? BLK_FEAT_SYNCHRONOUS : 0;
		has_holes = flags & 2 && nr_pages > 4 * NR_UNUSABLE;
		is_device = flags & 4;
		error = make_swap_file(nr_pages);
	}
	return error ?: TIMED(__x64_sys_swapon(&regs));
}

long turn_swap_off(void)
{
	const struct pt_regs regs = { .di = (unsigned long)swap_file };

	return TIMED(__x64_sys_swapoff(&regs));
}
