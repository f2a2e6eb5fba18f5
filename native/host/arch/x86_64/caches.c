// SPDX-License-Identifier: GPL-2.0-only
/* Control what the caches hold of some memory before a sample. */
#include <cpuid.h>
#include <immintrin.h>
#include "program.h"

#define LINE_BYTES 64UL

__attribute__((target("clflushopt")))
static void flush_fast(unsigned char *line, const unsigned char *end)
{
	for (; line < end; line += LINE_BYTES)
		_mm_clflushopt(line);
}

static bool have_clflushopt(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 23 & 1;
}

void cache_evict(void *start, size_t bytes)
{
	unsigned char *line = start, *end = line + bytes;

	if (have_clflushopt())
		flush_fast(line, end);
	else
		for (; line < end; line += LINE_BYTES)
			_mm_clflush(line);
	_mm_mfence();
}

void cache_touch(const void *start, size_t bytes)
{
	const unsigned char *line = start;

	/* arch_use() keeps the compiler from dropping the loads. */
	for (size_t at = 0; at < bytes; at += LINE_BYTES)
		arch_use(line[at]);
}
