// SPDX-License-Identifier: GPL-2.0-only
/* The files of a program, and the steps that read, write and truncate them. */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fadvise.h>
#include <linux/falloc.h>
#include <linux/init_syscalls.h>
#include <linux/memfd.h>
#include <uapi/linux/memfd.h>
#include <linux/mm.h>
#include <linux/resume_user_mode.h>
#include <linux/shmem_fs.h>
#include <linux/uio.h>
#include <asm/ptrace.h>
#include "devices.h"
#include "hosted.h"
#include "steps.h"

SYSTEM_CALL(memfd_create);
SYSTEM_CALL(memfd_secret);
SYSTEM_CALL(openat);
SYSTEM_CALL(ftruncate);
SYSTEM_CALL(fallocate);
SYSTEM_CALL(preadv2);
SYSTEM_CALL(pwritev2);
SYSTEM_CALL(close);
SYSTEM_CALL(fadvise64);
SYSTEM_CALL(fsync);
SYSTEM_CALL(fcntl);

#define AT_ONCE 16L	/* pages per call */
#define MOST_AT_ONCE 512L	/* for files with large folios; size of the buffer */
#define WORDS (PAGE_SIZE / sizeof(u64))

enum file_kind {
	SHMEM, ON_DISK, HUGETLB, SHMEM_HUGE, DEV_ZERO, READ_ONLY, SECRET, LARGE, BLOCKS,
	LIMITED, FRAMES, FAULTED, MIXED_MEMORY
};

#define BLOCK_ORDER 2	/* order of a block in files of kind BLOCKS */

static struct user_file files[MOST_FILES];
static u64 buffer[MOST_AT_ONCE * WORDS] __aligned(PAGE_SIZE);

struct user_file *file_of(long number)
{
	if (number < 0 || number >= MOST_FILES || !files[number].values)
		return NULL;
	return &files[number];
}

static struct user_file *new_file(long number, unsigned long nr_pages)
{
	if (number < 0 || number >= MOST_FILES || files[number].values ||
	    nr_pages > MOST_FILE_PAGES)
		return NULL;
	files[number].values = host_alloc(MOST_FILE_PAGES * sizeof(u64));
	files[number].nr_pages = nr_pages;
	return &files[number];
}

int new_shared_memory(unsigned long nr_pages)
{
	int number;

	for (number = MOST_FILES - 1; number >= MOST_FILES / 2; number--)
		if (new_file(number, nr_pages)) {
			files[number].may_be_huge = true;
			return number;
		}
	return -ENFILE;
}

static long open_on_disk(long number, enum file_kind kind, long nr_pages)
{
	/* khugepaged may collapse pages of a read-only file. */
	int mode = kind == READ_ONLY ? O_RDONLY : O_RDWR;
	char name[32];
	long fd, error;
	struct file *file;

	snprintf(name, sizeof(name), DISK_FOLDER "/%ld", number);
	fd = call(__x64_sys_openat, AT_FDCWD, (long)name, mode | O_CREAT, 0600, 0, 0);
	if (fd < 0)
		return fd;
	file = fget(fd);
	error = put_on_disk(file, nr_pages);
	if (kind == LARGE || kind == BLOCKS)
		make_large(file, kind == BLOCKS ? BLOCK_ORDER : 0);
	fput(file);
	return error ?: fd;
}

/* drivers/char/mem.c: mmap_zero(), mmap_zero_prepare() */
#ifdef HAVE_ZERO_SETUP_DESC
static int map_zero(struct vm_area_desc *desc)
{
	if (vma_desc_test(desc, VMA_SHARED_BIT))
		return shmem_zero_setup_desc(desc);
	vma_desc_set_anonymous(desc);
	return 0;
}

static const struct file_operations zero_operations = { .mmap_prepare = map_zero };
#else
static int map_zero(struct file *file, struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_SHARED)
		return shmem_zero_setup(vma);
	vma_set_anonymous(vma);
	return 0;
}

static const struct file_operations zero_operations = { .mmap = map_zero };
#endif

#define LIMITED_FOLDER "/limited"

/*
 * Mount a hugetlbfs with room for this file. Half of it is reserved at mount,
 * unless the pool is too small for that.
 */
static long open_limited(long number, long nr_pages)
{
	unsigned long kib = ALIGN(nr_pages, HPAGE_PMD_NR) << (PAGE_SHIFT - 10);
	static char options[PAGE_SIZE];	/* mount(2) copies a whole page */
	char name[32];
	int error;

	snprintf(name, sizeof(name), LIMITED_FOLDER "%ld", number);
	init_mkdir(name, 0700);
	snprintf(options, sizeof(options), "size=%luK,min_size=%luK", kib,
		 kib / 2 >> 11 << 11);
	error = init_mount("hugetlbfs", name, "hugetlbfs", 0, options);
	if (error) {
		snprintf(options, sizeof(options), "size=%luK", kib);
		error = init_mount("hugetlbfs", name, "hugetlbfs", 0, options);
	}
	if (error)
		return error;
	snprintf(name, sizeof(name), LIMITED_FOLDER "%ld/a", number);
	return call(__x64_sys_openat, AT_FDCWD, (long)name, O_RDWR | O_CREAT, 0600, 0, 0);
}

static bool is_of_device(enum file_kind kind)
{
	return kind == FRAMES || kind == FAULTED || kind == MIXED_MEMORY;
}

static bool is_on_disk(enum file_kind kind)
{
	return kind == ON_DISK || kind == READ_ONLY || kind == LARGE || kind == BLOCKS;
}

static long open_kind(long number, enum file_kind kind, long nr_pages)
{
	if (is_on_disk(kind))
		return open_on_disk(number, kind, nr_pages);
	if (is_of_device(kind))
		return open_device(kind == FRAMES ? MAPPED_AT_ONCE :
				   kind == FAULTED ? MAPPED_BY_FRAME : MAPPED_MIXED, nr_pages);
	switch (kind) {
	case LIMITED:
		return open_limited(number, nr_pages);
	case DEV_ZERO:
		return anon_inode_getfd("zero", &zero_operations, NULL, O_RDWR);
	case SECRET:
		return call(__x64_sys_memfd_secret, 0, 0, 0, 0, 0, 0);
	default:
		return call(__x64_sys_memfd_create, (long)"file",
			    MFD_ALLOW_SEALING | (kind == HUGETLB ? MFD_HUGETLB : 0), 0, 0, 0, 0);
	}
}

bool is_zero_device(long number)
{
	return file_of(number)->file->f_op == &zero_operations;
}

/* Fill each page's first and last word with its number, from 1 on, bypassing the cache. */
static void fill_on_disk(struct user_file *file)
{
	unsigned long i;
	u64 *page;

	for (i = 0; i < file->nr_pages; i++) {
		page = page_on_disk(file_inode(file->file), i);
		page[0] = i + 1;
		page[WORDS - 1] = i + 1;
		file->values[i] = i + 1;
	}
}

static void make_huge(struct file *file)
{
	struct shmem_sb_info *info = file_inode(file)->i_sb->s_fs_info;

	info->huge = 1;	/* SHMEM_HUGE_ALWAYS of mm/shmem.c */
}

long step_open(long number, long kind, long nr_pages)
{
	struct user_file *file;
	long fd;

	if (kind < 0 || kind > MIXED_MEMORY)
		return -EINVAL;
	fd = open_kind(number, kind, nr_pages);
	if (fd < 0)
		return fd;
	file = new_file(number, nr_pages);
	if (!file)
		return -ENFILE;
	file->fd = fd;
	file->file = fget(fd);
	if (kind == SHMEM_HUGE)
		make_huge(file->file);
	/* khugepaged may make huge pages in files of other kinds, too. */
	file->may_be_huge = kind == READ_ONLY ||
			    (!is_on_disk(kind) && !is_of_device(kind) && kind != SECRET);
	file->at_once = kind == LARGE || kind == BLOCKS ? MOST_AT_ONCE : AT_ONCE;
	if (kind == READ_ONLY)
		fill_on_disk(file);
	if (is_on_disk(kind) || is_of_device(kind) || kind == DEV_ZERO)
		return 0;
	return call(__x64_sys_ftruncate, fd, nr_pages << PAGE_SHIFT, 0, 0, 0, 0);
}

/* Whether a page is in a large swap entry that extends beyond the range @first to @end. */
bool is_in_swap_with_others(struct address_space *mapping, unsigned long index,
			    unsigned long first, unsigned long end)
{
	const unsigned long nr = 1UL << xa_get_order(&mapping->i_pages, index);
	const unsigned long begin = round_down(index, nr);

	return shmem_mapping(mapping) && xa_is_value(xa_load(&mapping->i_pages, index)) &&
	       (begin < first || begin + nr > end);
}

/* Before truncating shmem, read in a folio that is cut, and arm failures only after that. */
static void prepare_to_cut(struct file *file, unsigned long index)
{
	loff_t at = (loff_t)index << PAGE_SHIFT;

	if (shmem_mapping(file->f_mapping))
		begin_failing();
	if (is_in_swap_with_others(file->f_mapping, index, index, ULONG_MAX))
		kernel_read(file, buffer, sizeof(u64), &at);
}

long step_truncate(long number, long nr_pages)
{
	struct user_file *file = file_of(number);
	long error;

	if (!file || nr_pages < 0 || nr_pages > MOST_FILE_PAGES)
		return -EINVAL;
	if (file->file)
		prepare_to_cut(file->file, nr_pages);
	error = call(__x64_sys_ftruncate, file->fd, nr_pages << PAGE_SHIFT, 0, 0, 0, 0);
	if (!error)
		see_truncation(number, nr_pages);
	return error;
}

static bool is_within(const struct user_file *file, long page, long nr)
{
	return file && file->file && page >= 0 && nr > 0 && page + nr <= MOST_FILE_PAGES;
}

long step_fallocate(long number, long mode, long page, long nr)
{
	struct user_file *file = file_of(number);
	long error, i;

	if (!is_within(file, page, nr))
		return -EINVAL;
	error = call(__x64_sys_fallocate, file->fd, mode, page << PAGE_SHIFT, nr << PAGE_SHIFT,
		     0, 0);
	if (mode & FALLOC_FL_PUNCH_HOLE)
		end_uffd_wp_of_file(number, page, nr);
	for (i = page; !error && mode & FALLOC_FL_PUNCH_HOLE && i < page + nr; i++)
		if (!is_in_swap_with_others(file->file->f_mapping, i, page, page + nr))
			file->values[i] = 0;
	if (mode & FALLOC_FL_PUNCH_HOLE)
		return error;
	if (!error && !(mode & FALLOC_FL_KEEP_SIZE))
		file->nr_pages = max_t(unsigned long, file->nr_pages, page + nr);
	return error;
}

/* Read or write @nr pages of the buffer by preadv2(2) or pwritev2(2). */
static long transfer(system_call_t function, const struct user_file *file, long page, long nr,
		     long flags)
{
	static struct iovec piece;

	piece = (struct iovec){ buffer, nr << PAGE_SHIFT };
	return call(function, file->fd, (long)&piece, 1, page << PAGE_SHIFT, 0, flags);
}

long step_pwrite(long number, long page, long nr, long flags)
{
	struct user_file *file = file_of(number);
	long done, i;

	if (!is_within(file, page, nr))
		return -EINVAL;
	for (done = 0; done < nr; done += i) {
		long most = min(nr - done, file->at_once), bytes;

		for (i = 0; i < most; i++) {
			buffer[i * WORDS] = value_of_step(done + i);
			buffer[i * WORDS + WORDS - 1] = buffer[i * WORDS];
		}
		bytes = transfer(__x64_sys_pwritev2, file, page + done, most, flags);
		if (bytes <= 0)
			return bytes;
		most = bytes >> PAGE_SHIFT;
		for (i = 0; i < most; i++)
			file->values[page + done + i] = buffer[i * WORDS];
		file->nr_pages = max_t(unsigned long, file->nr_pages, page + done + most);
		if (!most)
			break;
	}
	return done;
}

long step_pread(long number, long page, long nr, long flags)
{
	struct user_file *file = file_of(number);
	long done, i;

	if (!is_within(file, page, nr))
		return -EINVAL;
	for (done = 0; done < nr; done += i) {
		long bytes = transfer(__x64_sys_preadv2, file, page + done,
				      min(nr - done, file->at_once), flags);

		if (bytes <= 0)
			return bytes ?: done;
		for (i = 0; i < bytes >> PAGE_SHIFT; i++)
			if (buffer[i * WORDS] != file->values[page + done + i] ||
			    buffer[i * WORDS + WORDS - 1] != file->values[page + done + i])
				wrong("file %ld holds %#llx in page %ld, where %#llx was written",
				      number, buffer[i * WORDS], page + done + i,
				      file->values[page + done + i]);
		if (!i)
			break;
	}
	return done;
}

long step_fadvise(long number, long page, long nr, long advice)
{
	struct user_file *file = file_of(number);

	if (!is_within(file, page, nr))
		return -EINVAL;
	return call(__x64_sys_fadvise64, file->fd, page << PAGE_SHIFT, nr << PAGE_SHIFT, advice,
		    0, 0);
}

long step_fsync(long number)
{
	struct user_file *file = file_of(number);

	return file && file->file ? call(__x64_sys_fsync, file->fd, 0, 0, 0, 0, 0) : -EINVAL;
}

long step_seal(long number, long seals)
{
	struct user_file *file = file_of(number);

	return file && file->file ?
	       call(__x64_sys_fcntl, file->fd, F_ADD_SEALS, seals, 0, 0, 0) : -EINVAL;
}

/* Drop all references to files, so that their contents are freed. */
void close_files(void)
{
	long number;
	char name[32];

	for (number = 0; number < MOST_FILES; number++) {
		struct file *file = files[number].file;

		if (!file)
			continue;
		files[number].file = NULL;
		call(__x64_sys_close, files[number].fd, 0, 0, 0, 0, 0);
		fput(file);
		resume_user_mode_work(NULL);
		flush_delayed_fput();
		snprintf(name, sizeof(name), LIMITED_FOLDER "%ld/a", number);
		if (!init_unlink(name)) {
			snprintf(name, sizeof(name), LIMITED_FOLDER "%ld", number);
			init_umount(name, 0);
		}
	}
	/* Files closed by other steps are freed on the task's return to user space. */
	resume_user_mode_work(NULL);
	flush_delayed_fput();
}
