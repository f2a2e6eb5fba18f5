// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions of mm that drivers call for pages of a process, and system calls
 * that do not change the contents of memory. calls.def lists them.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/init_syscalls.h>
#include <linux/memfd.h>
#include <uapi/linux/memfd.h>
#include <uapi/linux/mount.h>
#include <linux/mman.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/seq_file.h>
#include <linux/statfs.h>
#include "internal.h"
#include "calls.h"
#include "hosted.h"
#include "steps.h"
#include "trees.h"

SYSTEM_CALL(brk);
SYSTEM_CALL(close);
SYSTEM_CALL(fcntl);
SYSTEM_CALL(ftruncate);
SYSTEM_CALL(get_mempolicy);
SYSTEM_CALL(lseek);
SYSTEM_CALL(memfd_create);
SYSTEM_CALL(memfd_secret);
SYSTEM_CALL(mmap);
SYSTEM_CALL(move_pages);
SYSTEM_CALL(mremap);
SYSTEM_CALL(mseal);
SYSTEM_CALL(munmap);
SYSTEM_CALL(readahead);
SYSTEM_CALL(remap_file_pages);
SYSTEM_CALL(set_mempolicy_home_node);

#define BREAK_ADDRESS (LIBMM_USER_ADDRESS + (64UL << 30))
#define TEXT(word) ((long)(word))

/* --- pages of the process ---------------------------------------------- */

static void see_write(long start, long bytes)
{
	end_uffd_wp_by_write(current_process(), (start - LIBMM_USER_ADDRESS) >> PAGE_SHIFT,
			     bytes >> PAGE_SHIFT);
}

/* Take references to pages by each GUP function, and release them. */
long call_get_pages(long start, long bytes, long how, long writes)
{
	unsigned int flags = writes ? FOLL_WRITE : 0;
	long nr = min(bytes >> PAGE_SHIFT, MOST_PAGES), done;
	int locked = 1;

	if (writes)
		see_write(start, bytes);
	if (how < 3)
		mmap_read_lock(current->mm);
	done = how == 0 ? get_user_pages(start, nr, flags, pages) :
	       how == 1 ? pin_user_pages(start, nr, flags, pages) :
	       how == 2 ? get_user_pages_remote(current->mm, start, nr, flags, pages, &locked) :
	       how == 3 ? get_user_pages_unlocked(start, nr, pages, flags) :
	       how == 4 ? pin_user_pages_unlocked(start, nr, pages, flags) :
	       how == 5 ? get_user_pages_fast(start, nr, flags, pages) :
	       how == 6 ? get_user_pages_fast_only(start, nr, flags, pages) :
			  pin_user_pages_fast(start, nr, flags | FOLL_LONGTERM, pages);
	if (how < 3 && locked)
		mmap_read_unlock(current->mm);
	if (done <= 0)
		return done;
	if (how == 4)
		unpin_user_pages(pages, done);
	else if (how == 1 || how > 6)
		unpin_user_pages_dirty_lock(pages, done, writes);
	else
		release_pages(pages, done);
	return done;
}

/* Read and write as a debugger does. It writes the data that it has read. */
long call_access(long start, long bytes, long writes, long unused)
{
	static char some[2 * PAGE_SIZE];
	long nr = access_remote_vm(current->mm, start + 8, some,
				   min(bytes - 16, (long)sizeof(some)), 0);

	if (writes)
		see_write(start, bytes);
	return writes && nr > 0 ?
	       access_remote_vm(current->mm, start + 8, some, nr, FOLL_WRITE) : nr;
}

/* How many bytes from @start on are writable. */
static long writable_bytes(unsigned long start, unsigned long bytes)
{
	unsigned long at = start;
	struct vm_area_struct *vma;

	while (at < start + bytes) {
		vma = vma_lookup(current->mm, at);
		if (!vma || !(vma->vm_flags & VM_WRITE))
			break;
		at = vma->vm_end;
	}
	return min(at - start, bytes);
}

/* fault_in_safe_writeable() returns the bytes not faulted in, as copy_to_user() does. */
long call_fixup_fault(long start, long bytes, long writes, long unused)
{
	bool unlocked = false;
	size_t left;
	long error;

	see_write(start, bytes);
	mmap_read_lock(current->mm);
	error = fixup_user_fault(current->mm, start, writes ? FAULT_FLAG_WRITE : 0, &unlocked);
	mmap_read_unlock(current->mm);
	left = fault_in_safe_writeable((void __user *)start, bytes);
	if (left > bytes || bytes - left > writable_bytes(start, bytes))
		wrong("of %ld bytes %ld can be written, and %zu are said not to be faulted in",
		      bytes, writable_bytes(start, bytes), left);
	return error ?: left;
}

/* A device gets exclusive access to pages until the process touches them. */
long call_exclusive(long start, long bytes, long unused, long unused2)
{
	long first = (start - LIBMM_USER_ADDRESS) >> PAGE_SHIFT, nr = bytes >> PAGE_SHIFT;
	long i, done = 0;

	see_write(start, bytes);
	for (i = 0; i < min_t(long, nr, MOST_PAGES); i++) {
		struct folio *folio;
		struct page *page;

		mmap_read_lock(current->mm);
		page = make_device_exclusive(current->mm, start + (i << PAGE_SHIFT), pages,
					     &folio);
		mmap_read_unlock(current->mm);
		if (IS_ERR(page))
			continue;
		folio_unlock(folio);
		folio_put(folio);
		done++;
	}
	/* The whole folio of such a page becomes device-exclusive, so touch all of it. */
	for (i = ALIGN_DOWN(first, HPAGE_PMD_NR); i < ALIGN(first + nr, HPAGE_PMD_NR); i++) {
		unsigned long entry = translate(current->mm, address_of_page(i)).entry;

		if (entry && !(entry & _PAGE_PRESENT))
			load_page(current_process(), i);
	}
	return done;
}

/* Query the node of each page. */
long call_pages_status(long start, long bytes, long unused, long unused2)
{
	static int status[MOST_PAGES];
	long nr = min(bytes >> PAGE_SHIFT, MOST_PAGES), i;

	for (i = 0; i < nr; i++)
		pages[i] = (void *)start + (i << PAGE_SHIFT);
	return call(__x64_sys_move_pages, 0, nr, TEXT(pages), 0, TEXT(status), 0);
}

long call_lock_all(long start, long bytes, long unused, long unused2)
{
	long error;

	mmap_write_lock(current->mm);
	error = mm_take_all_locks(current->mm);
	if (!error)
		mm_drop_all_locks(current->mm);
	mmap_write_unlock(current->mm);
	return error;
}

/* Whether a range is unmapped, and clear of the guard gaps of stacks. */
static bool is_free(unsigned long start, unsigned long bytes)
{
	struct vm_area_struct *before, *behind = find_vma_prev(current->mm, start, &before);

	return (!behind || start + bytes <= vm_start_gap(behind)) &&
	       (!before || start >= vm_end_gap(before));
}

/*
 * mmap() without MAP_FIXED: the kernel uses the hint if that range is free
 * (mmap(2)). The lowest page is written.
 */
long call_mmap_anywhere(long start, long bytes, long flags, long nr)
{
	unsigned long word = 1, size = nr ? clamp(nr, 1L, 4096L) << PAGE_SHIFT : bytes;
	bool has_room = is_free(start, size) && !(flags & MAP_HUGETLB);
	long at = call(__x64_sys_mmap, start, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (at < 0)
		return at;
	if (has_room && at != start)
		wrong("mmap() returned %#lx, and the hint %#lx was free", at, start);
	access_word(at, true, &word);
	/* An access below a stack makes it grow. */
	if (flags & MAP_GROWSDOWN && !access_word(at - PAGE_SIZE, true, &word)) {
		at -= PAGE_SIZE;
		size += PAGE_SIZE;
	}
	return call(__x64_sys_munmap, at, size, 0, 0, 0, 0);
}

/* Map the lowest addresses, and move one page of them with mremap(). */
long call_map_low(long start, long bytes, long page, long nr)
{
	unsigned long size = clamp(nr, 1L, 64L) << PAGE_SHIFT, word = 1;
	unsigned long from = clamp(page, 0L, nr - 1) << PAGE_SHIFT, to = 2 * size;
	long at = call(__x64_sys_mmap, 0, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (at) {
		promises_may_be_lost = true;
		return at;
	}
	access_word(from, true, &word);
	at = call(__x64_sys_mremap, from, PAGE_SIZE, PAGE_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED,
		  to, 0);
	if (at != to || vma_lookup(current->mm, from))
		promises_may_be_lost = true;
	if (at == to && (access_word(to, false, &word) || word != 1))
		wrong("a page that was moved from %#lx holds %#lx, where 1 was written",
		      from, word);
	return call(__x64_sys_munmap, 0, to + size, 0, 0, 0, 0);
}

long call_brk(long start, long bytes, long nr, long unused)
{
	unsigned long word = 1, to = BREAK_ADDRESS + (nr << PAGE_SHIFT);

	if (!current->mm->start_brk) {
		current->mm->start_brk = BREAK_ADDRESS;
		current->mm->brk = BREAK_ADDRESS;
	}
	if (call(__x64_sys_brk, to, 0, 0, 0, 0, 0) != to)
		return -ENOMEM;
	return nr > 0 ? access_word(to - 8, true, &word) : 0;
}

/* --- a device that maps pages ------------------------------------------ */

static int map_how;

static vm_fault_t fault_on_device(struct vm_fault *vmf)
{
	pfn_t pfn = page_to_pfn_t(pages[0]);

	return map_how == 3 ? vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(pages[0])) :
	       map_how == 4 ? vmf_insert_mixed(vmf->vma, vmf->address, pfn) :
			      vmf_insert_page(vmf->vma, vmf->address, pages[0]);
}

static const struct vm_operations_struct device_operations = { .fault = fault_on_device };

static int map_device(struct file *file, struct vm_area_struct *vma)
{
	unsigned long nr = vma_pages(vma);

	vma->vm_ops = &device_operations;
	if (map_how == 0)
		return remap_pfn_range(vma, vma->vm_start, page_to_pfn(pages[0]), PAGE_SIZE,
				       vma->vm_page_prot);
	if (map_how == 1)
		return vm_insert_pages(vma, vma->vm_start, pages, &nr);
	if (map_how == 2)
		return vm_map_pages(vma, pages, nr);
	vm_flags_set(vma, map_how == 3 ? VM_PFNMAP : VM_MIXEDMAP);
	return 0;
}

static const struct file_operations device_file = { .mmap = map_device };

/* Map some pages, touch the first, and unmap them. */
long call_map_device(long start, long bytes, long how, long nr)
{
	unsigned long word;
	struct file *file;
	long at;

	map_how = how;
	nr = clamp(nr, 1L, MOST_PAGES);
	if (take_pages(nr))
		return -ENOMEM;
	file = anon_inode_getfile("device", &device_file, NULL, O_RDWR);
	if (IS_ERR(file)) {
		free_pages_of(nr);
		return PTR_ERR(file);
	}
	at = vm_mmap(file, 0, nr << PAGE_SHIFT, PROT_READ, MAP_SHARED, 0);
	if (!IS_ERR_VALUE(at)) {
		access_word(at, false, &word);
		call(__x64_sys_munmap, at, nr << PAGE_SHIFT, 0, 0, 0, 0);
	}
	fput(file);
	free_pages_of(nr);
	return IS_ERR_VALUE(at) ? at : 0;
}

/* --- system calls ------------------------------------------------------ */

long call_mseal(long start, long bytes, long unused, long unused2)
{
	return call(__x64_sys_mseal, start, bytes, 0, 0, 0, 0);
}

/* prctl(2): PR_SET_VMA_ANON_NAME */
long call_name(long start, long bytes, long number, long unused)
{
	static const char *const names[] = { NULL, "one", "two" };

	return TIMED(set_anon_vma_name(start, bytes, names[clamp(number, 0L, 2L)]));
}

long call_get_mempolicy(long start, long bytes, long flags, long unused)
{
	static unsigned long nodes[BITS_TO_LONGS(MAX_NUMNODES)];
	static int mode;

	return call(__x64_sys_get_mempolicy, TEXT(&mode), TEXT(nodes), MAX_NUMNODES,
		    flags & MPOL_F_ADDR ? start : 0, flags, 0);
}

long call_home_node(long start, long bytes, long node, long unused)
{
	return call(__x64_sys_set_mempolicy_home_node, start, bytes, node, 0, 0, 0);
}

/* Map other pages of the same file. Only shared mappings can do this. */
long call_remap_file_pages(long start, long bytes, long index, long unused)
{
	long first = (start - LIBMM_USER_ADDRESS) >> PAGE_SHIFT, i;
	struct user_page *user = &current_process()->pages[first];
	long error = call(__x64_sys_remap_file_pages, start, bytes, 0, index, 0, 0);

	if (error)	/* the failed call may have unmapped the range */
		see_what_is_mapped(current_process(), first, bytes >> PAGE_SHIFT);
	for (i = 0; !error && i < bytes >> PAGE_SHIFT; i++) {
		user[i] = user[0];
		user[i].index = index + i;
		user[i].is_uffd_wp = false;
	}
	return error;
}

long call_lseek(long start, long bytes, long number, long from)
{
	struct user_file *file = file_of(number);

	if (!file || !file->file)
		return -EINVAL;
	call(__x64_sys_readahead, file->fd, from << PAGE_SHIFT, 64 << PAGE_SHIFT, 0, 0, 0);
	call(__x64_sys_lseek, file->fd, from << PAGE_SHIFT, SEEK_HOLE, 0, 0, 0);
	return call(__x64_sys_lseek, file->fd, from << PAGE_SHIFT, SEEK_DATA, 0, 0, 0);
}

/* Create a memfd, resize it, seal it, and close it. */
long call_memfd(long start, long bytes, long flags, long seals)
{
	long fd = call(__x64_sys_memfd_create, TEXT("of a step"), flags, 0, 0, 0, 0), error;

	if (fd < 0)
		return fd;
	call(__x64_sys_ftruncate, fd, 1 << 21, 0, 0, 0, 0);
	error = call(__x64_sys_fcntl, fd, F_ADD_SEALS, seals, 0, 0, 0);
	call(__x64_sys_fcntl, fd, F_GET_SEALS, 0, 0, 0, 0);
	if (!error && flags & MFD_HUGETLB)
		error = call(__x64_sys_ftruncate, fd, 0, 0, 0, 0, 0);
	call(__x64_sys_close, fd, 0, 0, 0, 0, 0);
	return error;
}

long call_memfd_secret(long start, long bytes, long nr, long unused)
{
	long fd = call(__x64_sys_memfd_secret, 0, 0, 0, 0, 0, 0), at;
	unsigned long word = 1;

	if (fd < 0)
		return fd;
	nr = clamp(nr, 1L, 64L) << PAGE_SHIFT;
	call(__x64_sys_ftruncate, fd, nr, 0, 0, 0, 0);
	at = call(__x64_sys_mmap, 0, nr, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at > 0) {
		access_word(at, true, &word);
		call(__x64_sys_munmap, at, nr, 0, 0, 0, 0);
	}
	call(__x64_sys_close, fd, 0, 0, 0, 0, 0);
	return at < 0 ? at : 0;
}

/* Mount a tmpfs of its own, and create each kind of file in it. */
long call_tmpfs(long start, long bytes, long number, long unused)
{
	static const char *const options[] = {
		"size=1M,mode=700", "size=50%,huge=within_size,noswap",
		"mpol=interleave:0-1,nr_inodes=100",
		"huge=always,mpol=bind=static:0", "nosuch=1",
	};
	char long_name[158] = { };	/* too long for the inode, so it gets a page */
	const char *its = options[clamp(number, 0L, (long)ARRAY_SIZE(options) - 1)];
	static char some[PAGE_SIZE];
	const struct super_operations *operations;
	struct kstat about;
	struct file *file;
	loff_t at = 0;
	long error;

	init_mkdir("/tmp", 0700);
	strscpy(some, its, sizeof(some));
	error = init_mount("tmpfs", "/tmp", "tmpfs", 0, some);
	if (error)
		return error;
	file = filp_open("/tmp/a", O_RDWR | O_CREAT, 0600);
	if (!IS_ERR(file)) {
		kernel_write(file, some, 64, &at);
		operations = file_inode(file)->i_sb->s_op;
		operations->show_options(&(struct seq_file){ .buf = some, .size = sizeof(some) },
					 file->f_path.dentry);
		operations->statfs(file->f_path.dentry, &(struct kstatfs){ });
		__fput_sync(file);
	}
	init_link("/tmp/a", "/tmp/b");
	init_symlink("/tmp/a", "/tmp/c");
	memset(long_name, 'a', sizeof(long_name) - 1);
	init_symlink(long_name, "/tmp/d");
	init_stat("/tmp/c", &about, 0);
	init_mkdir("/tmp/e", 0700);
	init_rmdir("/tmp/e");
	init_unlink("/tmp/a");
	strscpy(some, "size=8M", sizeof(some));
	error = init_mount("tmpfs", "/tmp", "tmpfs", MS_REMOUNT, some);
	if (error)
		wrong("tmpfs with %s cannot be remounted with another size: %ld", its, error);
	return init_umount("/tmp", 0);
}

long call_pin_file(long start, long bytes, long number, long nr)
{
	struct user_file *file = file_of(number);
	static struct folio *folios[MOST_PAGES];
	pgoff_t offset;
	long done;

	nr = clamp(nr, 1L, MOST_PAGES);
	if (!file || !file->file || !file->nr_pages)
		return -EINVAL;
#ifndef HAVE_RESERVED_FOR_PINS	/* a new page would be taken from others' reservations */
	if (is_file_hugepages(file->file) &&
	    vfs_fallocate(file->file, 0, 0,
			  (loff_t)ALIGN(min(file->nr_pages, (unsigned long)nr), HPAGE_PMD_NR) <<
			  PAGE_SHIFT))
		return -ENOSPC;
#endif
	done = memfd_pin_folios(file->file, 0,
				(min(file->nr_pages, (unsigned long)nr) << PAGE_SHIFT) - 1,
				folios, nr, &offset);
	if (done > 0)
		unpin_folios(folios, done);
	return done;
}

/* --- the table --------------------------------------------------------- */

#define CALL(name_) { #name_, call_##name_ },
static const struct {
	const char *name;
	long (*run)(long start, long bytes, long x, long y);
} calls[] = {
#include "calls.def"
};

long step_call(long number, long name, long page, long nr, long x, long y)
{
	const char *word = text_of_word(name);
	unsigned int i;

	if (!word || page < 0 || nr < 0 || page >= MOST_USER_PAGES || nr > MOST_USER_PAGES - page)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (strlen(calls[i].name) == strcspn(word, "\n ") &&
		    !strncmp(word, calls[i].name, strlen(calls[i].name)))
			return calls[i].run(address_of_page(page), nr << PAGE_SHIFT, x, y);
	return -ENOENT;
}
