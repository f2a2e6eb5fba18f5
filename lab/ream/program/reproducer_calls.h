/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Performs the steps of a program by system calls, each in its process and in
 * the order of the text. Prints a line of JSON after each step: the line of the
 * text, and what the step returned.
 *
 *   returned   what the system call did, or -errno; 0 where it is an address
 *              or a process; pages that were read, written, moved or resident;
 *              for accesses the pages before the first signal
 *   timed_ns   of the measured step
 *   skipped    user space cannot perform the step
 *   wrong_page the first page that did not hold what it must hold
 *
 * Exit status: 0; 1 = a process died or a step hangs; 3 = the program's files
 * cannot be made here; 5 = a page held something wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES 4096L
#define USER_ADDRESS 0x100000000000L	/* page 0 of the program's addresses */
#define NR_PROCESSES 16
#define MOST_FILES 64
#define NO_PROCESS (-1)			/* a step of the program as a whole */
#define HANGS_AFTER_S 120

struct step {
	int line, process;
	const char *skipped;
};

/* What all processes see. */
static struct shared {
	pid_t pids[NR_PROCESSES];
	long returned;
	int is_over;	/* whether the last step ended its process */
	int is_sure;	/* whether all steps did so far what was predicted */
	uint64_t began_ns, timed_ns;
	long wrong_page;
	uint64_t found, expected;
} *shared;

static int commands[NR_PROCESSES][2], replies[2];
static int line;	/* of the step that is performed */

static int files[MOST_FILES];

static sigjmp_buf before_access;

static long nr_accessed;	/* pages of the step */

static void serve(int me);

static char *at(long page)
{
	return (char *)USER_ADDRESS + page * PAGE_BYTES;
}

static long result(long returned)
{
	return returned < 0 ? -errno : returned;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void begin_timed(void)
{
	shared->began_ns = now_ns();
}

static long end_timed(long returned)
{
	shared->timed_ns = now_ns() - shared->began_ns;
	return returned;
}

/* The value that a step writes into the first and the last word of a page. */
static uint64_t value_of(int of_line, long index)
{
	return (uint64_t)of_line << 32 | (uint64_t)(index + 1);
}

static void fill(char *page, uint64_t word)
{
	memcpy(page, &word, sizeof(word));
	memcpy(page + PAGE_BYTES - sizeof(word), &word, sizeof(word));
}

/* Later contents were predicted for a step that returns this. */
static long assume(long expected, long returned)
{
	if (expected != returned)
		shared->is_sure = 0;
	return returned;
}

static void on_fault(int signal)
{
	(void)signal;
	siglongjmp(before_access, 1);
}

typedef void (*access_t)(long page, long i, uint64_t word);

static void access_pages(access_t access, long page, long nr, uint64_t word)
{
	for (long i = 0; i < nr; i++) {
		access(page + i, i, word);
		__atomic_store_n(&nr_accessed, i + 1, __ATOMIC_SEQ_CST);
	}
}

/* How many pages were accessed before the first signal. */
static long accessed(access_t access, long page, long nr, uint64_t word)
{
	nr_accessed = 0;
	if (!sigsetjmp(before_access, 1))
		access_pages(access, page, nr, word);
	return nr_accessed;
}

static void write_same(long page, long i, uint64_t word)
{
	(void)i;
	fill(at(page), word);
}

static void write_next(long page, long i, uint64_t word)
{
	fill(at(page), word + i);
}

static long do_write(long page, long nr, long value)
{
	if (value)
		return accessed(write_same, page, nr, value);
	return accessed(write_next, page, nr, value_of(line, 0));
}

static void read_word(long page, long i, uint64_t word)
{
	(void)i;
	(void)word;
	__atomic_load_n(at(page), __ATOMIC_SEQ_CST);
}

static long do_read(long page, long nr)
{
	return accessed(read_word, page, nr, 0);
}

static void check(long page, long i, uint64_t expected)
{
	char *words = at(page);
	uint64_t first, last;

	(void)i;
	memcpy(&first, words, sizeof(first));
	memcpy(&last, words + PAGE_BYTES - sizeof(last), sizeof(last));
	if ((first == expected && last == expected) || shared->wrong_page >= 0)
		return;
	shared->wrong_page = page;
	shared->found = first == expected ? last : first;
	shared->expected = expected;
}

static void check_next(long page, long i, uint64_t expected)
{
	check(page, i, expected + i);
}

/* Page i holds what a step wrote as its page index + i. */
static void expect(long page, long nr, int of_line, long index)
{
	if (shared->is_sure)
		accessed(check_next, page, nr, value_of(of_line, index));
}

/* All pages hold the same; 0 = zeroes. */
static void expect_same(long page, long nr, uint64_t word)
{
	if (shared->is_sure)
		accessed(check, page, nr, word);
}

/* Write each page's number, from 1 on, in its first and its last word, and allow only reads. */
static long fill_to_read(long file, long nr)
{
	uint64_t words[PAGE_BYTES / sizeof(uint64_t)] = { 0 };
	char name[64];
	int written = files[file];
	long i;

	for (i = 0; i < nr; i++) {
		words[0] = i + 1;
		words[PAGE_BYTES / sizeof(uint64_t) - 1] = i + 1;
		if (pwrite(written, words, PAGE_BYTES, i * PAGE_BYTES) != PAGE_BYTES)
			return -errno;
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", written);
	files[file] = open(name, O_RDONLY);
	close(written);
	return files[file] < 0 ? -errno : 0;
}

static long do_open(long file, long kind, long nr)
{
	if (file >= MOST_FILES)
		return -EMFILE;
	if (kind > 9)	/* memory of a device, which only a driver has */
		return -ENODEV;
	if (kind == 1 || kind == 5 || kind == 7 || kind == 8)
		files[file] = open(".", O_TMPFILE | O_RDWR, 0600);
	else if (kind == 4)
		files[file] = open("/dev/zero", O_RDWR);
	else if (kind == 6)
		files[file] = syscall(SYS_memfd_secret, 0);
	else
		files[file] = memfd_create("program", MFD_ALLOW_SEALING |
					       (kind == 2 || kind == 9 ? MFD_HUGETLB : 0));
	if (files[file] < 0)
		return -errno;
	if (kind == 4)
		return 0;
	if (ftruncate(files[file], nr * PAGE_BYTES))
		return -errno;
	return kind == 5 ? fill_to_read(file, nr) : 0;
}

static long do_mmap(long page, long nr, long protection, long flags, long file,
		    long offset)
{
	void *mapped = mmap(at(page), nr * PAGE_BYTES, protection, flags,
			    file < 0 ? -1 : files[file], offset * PAGE_BYTES);

	return mapped == MAP_FAILED ? -errno : 0;
}

static long do_munmap(long page, long nr)
{
	return result(munmap(at(page), nr * PAGE_BYTES));
}

static long do_mprotect(long page, long nr, long protection)
{
	return result(mprotect(at(page), nr * PAGE_BYTES, protection));
}

static long do_mremap(long page, long nr, long new_nr, long flags,
		      long new_page)
{
	void *moved;

	/* The step unmaps what is there, even if the source is not mapped. */
	if (flags & 4 /* MREMAP_DONTUNMAP */ &&
	    (new_page >= page + nr || page >= new_page + new_nr))
		munmap(at(new_page), new_nr * PAGE_BYTES);
	moved = mremap(at(page), nr * PAGE_BYTES, new_nr * PAGE_BYTES, flags,
		       at(new_page));
	return moved == MAP_FAILED ? -errno : 0;
}

static long do_madvise(long page, long nr, long advice)
{
	return result(madvise(at(page), nr * PAGE_BYTES, advice));
}

static long do_mlock(long page, long nr, long flags)
{
	return result(mlock2(at(page), nr * PAGE_BYTES, flags));
}

static long do_munlock(long page, long nr)
{
	return result(munlock(at(page), nr * PAGE_BYTES));
}

static long do_mlockall(long flags)
{
	return result(mlockall(flags));
}

static long do_munlockall(void)
{
	return result(munlockall());
}

static long do_msync(long page, long nr, long flags)
{
	return result(msync(at(page), nr * PAGE_BYTES, flags));
}

static long do_mincore(long page, long nr)
{
	unsigned char *resident = malloc(nr);
	long returned = result(mincore(at(page), nr * PAGE_BYTES, resident));
	long nr_resident = 0;

	for (long i = 0; !returned && i < nr; i++)
		nr_resident += resident[i] & 1;
	free(resident);
	return returned ? returned : nr_resident;
}

static long do_fork(long child)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid)
		serve(child);
	shared->pids[child] = pid;
	return 0;
}

static long do_exit(void)
{
	shared->is_over = 1;	/* serve() ends the process after its reply */
	return 0;
}

static long do_move_pages(long page, long nr, long node, long flags)
{
	void **pages = malloc(nr * sizeof(*pages));
	int *nodes = malloc(2 * nr * sizeof(*nodes));
	long returned, nr_moved = 0;

	for (long i = 0; i < nr; i++) {
		pages[i] = at(page + i);
		nodes[i] = node;
	}
	returned = result(syscall(SYS_move_pages, 0, nr, pages, nodes,
				  nodes + nr, flags));
	for (long i = 0; returned >= 0 && i < nr; i++)
		nr_moved += nodes[nr + i] == node;
	free(pages);
	free(nodes);
	return returned < 0 ? returned : nr_moved;
}

static long do_mbind(long page, long nr, long mode, unsigned long nodes,
		     long flags)
{
	return result(syscall(SYS_mbind, at(page), nr * PAGE_BYTES, mode,
			      nodes ? &nodes : NULL, nodes ? 64 : 0, flags));
}

static long do_set_mempolicy(long mode, unsigned long nodes)
{
	return result(syscall(SYS_set_mempolicy, mode, nodes ? &nodes : NULL,
			      nodes ? 64 : 0));
}

static long do_migrate_pages(unsigned long from, unsigned long to)
{
	return result(syscall(SYS_migrate_pages, 0, 64, &from, &to));
}

static long do_run_on(long cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return result(sched_setaffinity(0, sizeof(cpus), &cpus));
}

/* Newer than the headers of some distributions: include/uapi/linux/userfaultfd.h. */
#define USERFAULT_SIGBUS (1UL << 7)
#define USERFAULT_WP_ASYNC (1UL << 15)
#define USERFAULT_MOVE _IOWR(UFFDIO, 0x05, struct userfault_move)
#define USERFAULT_POISON _IOWR(UFFDIO, 0x08, struct userfault_poison)

struct userfault_move {
	uint64_t dst, src, len, mode;
	int64_t moved;
};

struct userfault_poison {
	struct uffdio_range range;
	uint64_t mode;
	int64_t updated;
};

static int userfaults = -1;
static pid_t userfaults_of;

/* This process's descriptor; faults that nothing resolves end in SIGBUS. */
static int userfault_fd(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = USERFAULT_SIGBUS | USERFAULT_WP_ASYNC,
	};

	if (userfaults_of == getpid())
		return userfaults;
	for (int tries = 0; tries < 2; tries++) {
		userfaults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK |
				     UFFD_USER_MODE_ONLY);
		if (userfaults < 0 || !ioctl(userfaults, UFFDIO_API, &api))
			break;
		close(userfaults);
		userfaults = -1;
		api.api = UFFD_API;
		api.features = USERFAULT_SIGBUS;
	}
	userfaults_of = getpid();
	return userfaults;
}

static struct uffdio_range userfault_range(long page, long nr)
{
	return (struct uffdio_range){ (uintptr_t)at(page), nr * PAGE_BYTES };
}

static long do_uffd_register(long page, long nr, long mode)
{
	struct uffdio_register its = { .range = userfault_range(page, nr),
				       .mode = mode };

	return result(ioctl(userfault_fd(), UFFDIO_REGISTER, &its));
}

static long do_uffd_unregister(long page, long nr)
{
	struct uffdio_range its = userfault_range(page, nr);

	return result(ioctl(userfault_fd(), UFFDIO_UNREGISTER, &its));
}

static long do_uffd_wp(long page, long nr, long protects)
{
	struct uffdio_writeprotect its = {
		.range = userfault_range(page, nr),
		.mode = protects ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return result(ioctl(userfault_fd(), UFFDIO_WRITEPROTECT, &its));
}

static long do_uffd_copy(long page, long nr, long flags)
{
	char *from = calloc(nr, PAGE_BYTES);
	struct uffdio_copy its = { .dst = (uintptr_t)at(page),
				   .src = (uintptr_t)from,
				   .len = nr * PAGE_BYTES,
				   .mode = flags };
	long returned;

	for (long i = 0; i < nr; i++)
		fill(from + i * PAGE_BYTES, value_of(line, i));
	returned = result(ioctl(userfault_fd(), UFFDIO_COPY, &its));
	free(from);
	return returned;
}

static long do_uffd_zero(long page, long nr)
{
	struct uffdio_zeropage its = { .range = userfault_range(page, nr) };

	return result(ioctl(userfault_fd(), UFFDIO_ZEROPAGE, &its));
}

static long do_uffd_move(long page, long nr, long from_page)
{
	struct userfault_move its = { .dst = (uintptr_t)at(page),
				      .src = (uintptr_t)at(from_page),
				      .len = nr * PAGE_BYTES };

	return result(ioctl(userfault_fd(), USERFAULT_MOVE, &its));
}

static long do_uffd_continue(long page, long nr)
{
	struct uffdio_continue its = { .range = userfault_range(page, nr) };

	return result(ioctl(userfault_fd(), UFFDIO_CONTINUE, &its));
}

static long do_uffd_poison(long page, long nr)
{
	struct userfault_poison its = { .range = userfault_range(page, nr) };

	return result(ioctl(userfault_fd(), USERFAULT_POISON, &its));
}

static long do_truncate(long file, long nr)
{
	return result(ftruncate(files[file], nr * PAGE_BYTES));
}

static long do_fallocate(long file, long mode, long page, long nr)
{
	return result(fallocate(files[file], mode, page * PAGE_BYTES,
				nr * PAGE_BYTES));
}

static long in_pages(long bytes)
{
	return bytes < 0 ? -errno : bytes / PAGE_BYTES;
}

static long do_pwrite(long file, long page, long nr, long flags)
{
	char *from = calloc(nr, PAGE_BYTES);
	const struct iovec all = { from, nr * PAGE_BYTES };
	long returned;

	for (long i = 0; i < nr; i++)
		fill(from + i * PAGE_BYTES, value_of(line, i));
	returned = in_pages(pwritev2(files[file], &all, 1, page * PAGE_BYTES, flags));
	free(from);
	return returned;
}

static long do_pread(long file, long page, long nr, long flags)
{
	char *to = malloc(nr * PAGE_BYTES);
	const struct iovec all = { to, nr * PAGE_BYTES };
	long returned = in_pages(preadv2(files[file], &all, 1, page * PAGE_BYTES, flags));

	free(to);
	return returned;
}

static long do_fadvise(long file, long page, long nr, long advice)
{
	return -posix_fadvise(files[file], page * PAGE_BYTES, nr * PAGE_BYTES,
			      advice);
}

static long do_fsync(long file)
{
	return result(fsync(files[file]));
}

static long do_seal(long file, long seals)
{
	return result(fcntl(files[file], F_ADD_SEALS, seals));
}

static long write_file(const char *file, const char *value)
{
	int fd = open(file, O_WRONLY);
	long returned;

	if (fd < 0)
		return -errno;
	returned = result(write(fd, value, strlen(value)));
	close(fd);
	return returned;
}

static long do_compact(void)
{
	long returned = write_file("/proc/sys/vm/compact_memory", "1");

	return returned < 0 ? returned : 0;
}

static long do_wait(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	return result(nanosleep(&time, NULL));
}

static int is_there(int process)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", shared->pids[process]);
	return shared->pids[process] && !access(path, F_OK);
}
