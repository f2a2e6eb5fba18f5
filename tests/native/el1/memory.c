// SPDX-License-Identifier: GPL-2.0-only
/* At EL1: memory, its translation, and how it is compared with an image. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "home.h"

#define GIB (1UL << 30)
#define NR_ENTRIES 512
#define MOST_TABLES 8
#define TABLE 3UL
#define BLOCK 0x701UL	/* accessed, inner shareable, attribute 0 */
#define HEAP_BYTES (4UL << 20)

/* Where a kernel of 48 bits and 4 KiB pages has its map. arch/arm64/include/asm/memory.h */
#define VMEMMAP_START 0xfffffdffc0000000UL

uint64_t home_low_table[NR_ENTRIES] __attribute__((aligned(4096)));
uint64_t home_high_table[NR_ENTRIES] __attribute__((aligned(4096)));

static uint64_t tables[MOST_TABLES][NR_ENTRIES] __attribute__((aligned(4096)));
static unsigned int nr_tables;
static uint64_t next_frame = GIB;	/* memory begins there, with this program */

static char heap[HEAP_BYTES] __attribute__((aligned(64)));
static size_t heap_used;

static void map_block(uintptr_t address)
{
	uint64_t *upper = address >> 63 ? home_high_table : home_low_table;
	uint64_t *entry = &upper[address / (NR_ENTRIES * GIB) % NR_ENTRIES];

	if (!*entry) {
		if (nr_tables == MOST_TABLES)
			die(RUNNER_NO_RESOURCE, "more than %u tables", MOST_TABLES);
		*entry = (uint64_t)tables[nr_tables++] | TABLE;
	}
	entry = (uint64_t *)(*entry & ~TABLE) + address / GIB % NR_ENTRIES;
	if (*entry)
		return;
	*entry = next_frame | BLOCK;
	next_frame += GIB;
	asm volatile("dsb ishst\n\tisb" : : : "memory");
}

void home_map(uintptr_t address, size_t bytes)
{
	for (uintptr_t at = address & ~(GIB - 1); at - address + GIB < bytes + GIB; at += GIB)
		map_block(at);
}

void home_make_tables(void)
{
	map_block(next_frame);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
	(void)protection;
	(void)flags;
	(void)file;
	(void)offset;
	home_map((uintptr_t)address, bytes);
	return address;
}

int madvise(void *address, size_t bytes, int advice)
{
	(void)address;
	(void)bytes;
	(void)advice;
	return 0;
}

/* All of this program can be written and executed. */
int mprotect(void *address, size_t bytes, int protection)
{
	(void)address;
	(void)bytes;
	(void)protection;
	return 0;
}

/* The map lies where the kernel's headers say, whatever a process has there. */
struct arena launch_map(uintptr_t address, size_t bytes, size_t guard_bytes)
{
	(void)address;
	home_map(VMEMMAP_START, bytes + guard_bytes);
	return (struct arena){ (unsigned char *)VMEMMAP_START, bytes + guard_bytes };
}

void *launch_map_small(uintptr_t address, size_t bytes)
{
	home_map(address, bytes);
	return (void *)address;
}

/* Zeroed, and never given back. */
void *host_alloc(unsigned long bytes)
{
	void *memory = heap + heap_used;

	heap_used += (bytes + 63) & ~63UL;
	if (heap_used > HEAP_BYTES)
		die(RUNNER_NO_RESOURCE, "no memory for %lu bytes", bytes);
	return memory;
}

void host_free(void *memory)
{
	(void)memory;
}

void *malloc(size_t bytes)
{
	return host_alloc(bytes);
}

void free(void *memory)
{
	host_free(memory);
}

size_t arena_first_difference(const unsigned char *start, size_t bytes,
			      const struct image *image, unsigned int nr_threads)
{
	(void)nr_threads;
	for (size_t at = 0; at < bytes; at++)
		if (start[at] != image->start[at % image->bytes])
			return at;
	return ARENA_NO_DIFFERENCE;
}

bool arena_is(const char *row, const char *subject, const char *where, const char *type,
	      const unsigned char *start, size_t bytes, const struct image *image,
	      unsigned int nr_threads)
{
	size_t at = arena_first_difference(start, bytes, image, nr_threads);

	(void)type;
	if (at == ARENA_NO_DIFFERENCE)
		return true;
	fprintf(stderr, "%s: %s: %s differs at byte %zu: %lx, not %lx\n", row, subject, where,
		at, (unsigned long)start[at], (unsigned long)image->start[at % image->bytes]);
	return false;
}

void arena_set_guard(unsigned char *start)
{
	memset(start, (int)(ARENA_POISON & 0xff), ARENA_GUARD_BYTES);
}

bool arena_guard_is_whole(const char *row, const char *subject, const unsigned char *start,
			  unsigned char expected)
{
	const struct image image = { .start = &expected, .bytes = 1 };

	return arena_is(row, subject, "the guard", NULL, start, ARENA_GUARD_BYTES, &image, 1);
}

bool area_is_as_expected(const char *who, const char *of, const struct host_area *area)
{
	if (!memcmp(area->is, area->expected, area->bytes))
		return true;
	fprintf(stderr, "%s: a struct %s%s is not as it must be\n", who, area->type, of);
	return false;
}

bool areas_are_as_expected(const char *row, const char *subject, const char *of,
			   const struct host_area *areas)
{
	(void)row;
	for (; areas->type; areas++)
		if (!area_is_as_expected(subject, of, areas))
			return false;
	return true;
}
