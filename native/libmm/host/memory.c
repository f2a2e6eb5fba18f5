// SPDX-License-Identifier: GPL-2.0-only
/* Memory of the computer: RAM, struct pages, and mappings that the kernel makes. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "computer.h"

#define PAGE_BYTES (1UL << LIBMM_PAGE_SHIFT)
#define DESCRIPTOR_BYTES 64UL	/* size of struct page */
#define HUGE_BYTES (2UL << 20)	/* the struct page of LIBMM_FIRST_PFN is aligned to it */
#define DESCRIPTOR_PAGES_BEHIND 65536UL	/* the rest of the last section, and a device's section */

static int ram_fd;
static unsigned long ram_bytes;
static bool is_timed, may_be_huge;
static unsigned long heap_next = LIBMM_HEAP_ADDRESS;

void memory_map(unsigned long address, unsigned long bytes, int protection, int flags, int fd,
		unsigned long offset)
{
	if (mmap((void *)address, bytes, protection, flags | MAP_FIXED, fd, (off_t)offset) ==
	    MAP_FAILED)
		die(RUNNER_NO_RESOURCE, "%lu bytes at %#lx cannot be mapped: %s", bytes, address,
		    strerror(errno));
}

/* The heap is one mapping at a fixed address, so that every run gets the same addresses. */
FROM_KERNEL void *host_alloc(unsigned long bytes)
{
	unsigned long at = heap_next;

	heap_next += (bytes + 63) & ~63UL;
	if (heap_next > LIBMM_HEAP_ADDRESS + LIBMM_MOST_HEAP_BYTES)
		die(RUNNER_NO_RESOURCE, "the oracles want more than %lu bytes of memory",
		    LIBMM_MOST_HEAP_BYTES);
	return (void *)at;
}

static int make_map_huge(void)
{
	unsigned long start = LIBMM_MAP_ADDRESS + LIBMM_FIRST_PFN * DESCRIPTOR_BYTES;
	unsigned long bytes = (ram_bytes >> LIBMM_PAGE_SHIFT) * DESCRIPTOR_BYTES;

	bytes = (bytes + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
	memory_map(start, bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return madvise((void *)start, bytes, MADV_HUGEPAGE);
}

FROM_KERNEL void host_set_ram(unsigned long nr_frames)
{
	if (ftruncate(ram_fd, (off_t)(nr_frames << LIBMM_PAGE_SHIFT)))
		die(RUNNER_NO_RESOURCE, "%lu frames of memory: %s", nr_frames, strerror(errno));
	ram_bytes = nr_frames << LIBMM_PAGE_SHIFT;
	host_map(LIBMM_RAM_ADDRESS, LIBMM_FIRST_PFN, nr_frames);
	/* The image lies in the direct map, so its pages need struct pages, too. */
	memory_map(LIBMM_MAP_ADDRESS,
		   (LIBMM_FIRST_PFN + nr_frames + DESCRIPTOR_PAGES_BEHIND) * DESCRIPTOR_BYTES,
		   PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	/* Huge pages take less time to fault in. Nothing but time depends on them. */
	if (may_be_huge)
		make_map_huge();
}

/* A real memmap is mapped by huge pages. Here it has 4 KiB pages unless this is called. */
FROM_KERNEL void host_make_map_huge(void)
{
	if (make_map_huge())
		die(RUNNER_NO_RESOURCE, "the map cannot have huge pages: %s", strerror(errno));
}

FROM_KERNEL void host_map(unsigned long address, unsigned long pfn, unsigned long nr_frames)
{
	memory_map(address, nr_frames << LIBMM_PAGE_SHIFT, PROT_READ | PROT_WRITE, MAP_SHARED,
		   ram_fd, (pfn - LIBMM_FIRST_PFN) << LIBMM_PAGE_SHIFT);
}

FROM_KERNEL void host_unmap(unsigned long address, unsigned long bytes)
{
	memory_map(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void memory_prepare(int fd, bool measures)
{
	may_be_huge = !measures;
	ram_fd = fd >= 0 ? fd : memfd_create("ram", MFD_CLOEXEC);
	if (ram_fd < 0)
		die(RUNNER_NO_RESOURCE, "memory for the computer: %s", strerror(errno));
	/* A shared mapping is not counted as data, which RLIMIT_DATA limits. */
	memory_map(LIBMM_HEAP_ADDRESS, LIBMM_MOST_HEAP_BYTES, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void memory_open_text(void)
{
	unsigned long start = (unsigned long)__executable_start & ~(PAGE_BYTES - 1);

	if (mprotect((void *)start, (unsigned long)etext - start,
		     PROT_READ | PROT_WRITE | PROT_EXEC))
		die(RUNNER_NO_RESOURCE, "kernel text cannot be made writable: %s",
		    strerror(errno));
}

FROM_KERNEL void host_make_present(void *at, unsigned long bytes)
{
	unsigned long before = (unsigned long)at & (PAGE_BYTES - 1);

	if (is_timed && madvise((char *)at - before, bytes + before, MADV_POPULATE_WRITE))
		die(RUNNER_NO_RESOURCE, "%lu bytes at %p cannot be made present: %s", bytes, at,
		    strerror(errno));
}

FROM_KERNEL void host_expect_timing(void)
{
	is_timed = true;
	host_make_present((void *)LIBMM_RAM_ADDRESS, ram_bytes);
	host_make_present(__executable_start, (unsigned long)(etext - __executable_start));
	host_make_present(__data_start, (unsigned long)(_end - __data_start));
}
