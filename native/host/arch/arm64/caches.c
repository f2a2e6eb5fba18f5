// SPDX-License-Identifier: GPL-2.0-only
/* Control what the caches hold of some memory before a sample. */
#include "program.h"

/* CTR_EL0.DminLine is log2 of the number of words in the smallest line. */
static unsigned long line_bytes(void)
{
	unsigned long type;

	asm("mrs %0, ctr_el0" : "=r" (type));
	return 4UL << (type >> 16 & 0xf);
}

void cache_evict(void *start, size_t bytes)
{
	unsigned long step = line_bytes();

	for (unsigned char *line = start, *end = line + bytes; line < end; line += step)
		asm volatile("dc civac, %0" : : "r" (line) : "memory");
	asm volatile("dsb ish" : : : "memory");
}

void cache_touch(const void *start, size_t bytes)
{
	const unsigned char *line = start;
	unsigned long step = line_bytes();

	for (size_t at = 0; at < bytes; at += step)
		arch_use(line[at]);
}
