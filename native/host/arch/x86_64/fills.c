// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kinds of fills on x86-64: non-temporal stores of 8, 32 and 64 bytes, and the
 * string store.
 */
#include <immintrin.h>
#include "program.h"

static bool always(void)
{
	return true;
}

static void fill_movnti(unsigned char *to, size_t bytes, uint64_t word)
{
	/* Unroll the eight stores, since a loop would cost more than they do. */
	for (unsigned char *line = to; line < to + bytes; line += 64)
		asm volatile("movnti %1, 0(%0)\n\t"
			     "movnti %1, 8(%0)\n\t"
			     "movnti %1, 16(%0)\n\t"
			     "movnti %1, 24(%0)\n\t"
			     "movnti %1, 32(%0)\n\t"
			     "movnti %1, 40(%0)\n\t"
			     "movnti %1, 48(%0)\n\t"
			     "movnti %1, 56(%0)"
			     : : "r" (line), "r" (word) : "memory");
}

static bool have_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

__attribute__((target("avx2")))
static void fill_ymm(unsigned char *to, size_t bytes, uint64_t word)
{
	__m256i value = _mm256_set1_epi64x((long long)word);
	__m256i *line = (__m256i *)to;

	for (size_t nr = bytes / 64; nr; nr--, line += 2) {
		_mm256_stream_si256(line, value);
		_mm256_stream_si256(line + 1, value);
	}
}

static bool have_avx512(void)
{
	return __builtin_cpu_supports("avx512f");
}

__attribute__((target("avx512f")))
static void fill_zmm(unsigned char *to, size_t bytes, uint64_t word)
{
	__m512i value = _mm512_set1_epi64((long long)word);
	__m512i *line = (__m512i *)to;

	for (size_t nr = bytes / 64; nr; nr--, line++)
		_mm512_stream_si512(line, value);
}

static void fill_rep_stosq(unsigned char *to, size_t bytes, uint64_t word)
{
	size_t nr = bytes / 8;

	asm volatile("rep stosq"
		     : "+D" (to), "+c" (nr)
		     : "a" (word)
		     : "memory");
}

const struct fill_kind fill_kinds[] = {
	{ "movnti-8", true, always, fill_movnti },
	{ "vmovntdq-32", true, have_avx2, fill_ymm },
	{ "vmovntdq-64", true, have_avx512, fill_zmm },
	{ "rep-stosq", false, always, fill_rep_stosq },
	{ .name = NULL },
};

void fill_drain(void)
{
	_mm_sfence();
}
