// SPDX-License-Identifier: GPL-2.0-only
/*
 * The physical limit: copy the same bytes between the same frames, folio by folio
 * in the same order, without unmapping, locking or counting anything.
 */
#include <immintrin.h>
#include <string.h>
#include "copies.h"
#include "program.h"

static bool always(void)
{
	return true;
}

static void copy_memcpy(unsigned char *to, const unsigned char *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

/* The kernel itself uses this if the CPU has ERMS. */
static void copy_rep_movsb(unsigned char *to, const unsigned char *from, size_t bytes)
{
	asm volatile("rep movsb"
		     : "+D" (to), "+S" (from), "+c" (bytes)
		     : : "memory");
}

static bool have_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

__attribute__((target("avx2")))
static void copy_ymm(unsigned char *to, const unsigned char *from, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += 128) {
		__m256i a = _mm256_load_si256((const __m256i *)(from + at));
		__m256i b = _mm256_load_si256((const __m256i *)(from + at + 32));
		__m256i c = _mm256_load_si256((const __m256i *)(from + at + 64));
		__m256i d = _mm256_load_si256((const __m256i *)(from + at + 96));

		_mm256_stream_si256((__m256i *)(to + at), a);
		_mm256_stream_si256((__m256i *)(to + at + 32), b);
		_mm256_stream_si256((__m256i *)(to + at + 64), c);
		_mm256_stream_si256((__m256i *)(to + at + 96), d);
	}
}

static bool have_avx512(void)
{
	return __builtin_cpu_supports("avx512f");
}

__attribute__((target("avx512f")))
static void copy_zmm(unsigned char *to, const unsigned char *from, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += 256) {
		__m512i a = _mm512_load_si512(from + at);
		__m512i b = _mm512_load_si512(from + at + 64);
		__m512i c = _mm512_load_si512(from + at + 128);
		__m512i d = _mm512_load_si512(from + at + 192);

		_mm512_stream_si512((__m512i *)(to + at), a);
		_mm512_stream_si512((__m512i *)(to + at + 64), b);
		_mm512_stream_si512((__m512i *)(to + at + 128), c);
		_mm512_stream_si512((__m512i *)(to + at + 192), d);
	}
}

const struct copy_kind copy_kinds[] = {
	{ "memcpy", always, copy_memcpy },
	{ "rep-movsb", always, copy_rep_movsb },
	{ "vmovntdq-32", have_avx2, copy_ymm },
	{ "vmovntdq-64", have_avx512, copy_zmm },
	{ .name = NULL },
};

/* CPUs take pieces one by one: an interrupted CPU delays the rest by one at most. */
#define PIECE_BYTES (512UL << 10)
#define PAGE_BYTES 4096UL

struct share {
	const struct copy_job *job;
	size_t pieces_per_folio;	/* 1, unless a folio is larger than a piece */
	size_t folios_per_piece;	/* 1, unless it is smaller */
	size_t nr_pieces;
	size_t next;
};

static void copy_piece(const struct share *share, size_t piece)
{
	const struct copy_job *job = share->job;
	size_t bytes = job->folio_bytes / share->pieces_per_folio;
	size_t first = piece / share->pieces_per_folio * share->folios_per_piece;
	size_t end = min_size(first + share->folios_per_piece, job->nr_folios);
	size_t within = piece % share->pieces_per_folio * bytes;

	for (size_t i = first; i < end; i++) {
		size_t at = job->heads[i] * PAGE_BYTES + within;

		job->copy(job->to + at, job->from + at, bytes);
	}
}

static void copy_pieces(void *context, unsigned int index, unsigned int nr)
{
	struct share *share = context;

	(void)index;
	(void)nr;
	for (;;) {
		size_t piece = __atomic_fetch_add(&share->next, 1, __ATOMIC_RELAXED);

		if (piece >= share->nr_pieces)
			break;
		copy_piece(share, piece);
	}
	_mm_sfence();	/* drained before this CPU counts as done */
}

void copy_folios(const struct copy_job *job, unsigned int nr_threads)
{
	struct share share = {
		.job = job, .pieces_per_folio = 1, .folios_per_piece = 1,
	};

	/* A single CPU need not divide folios. */
	if (nr_threads > 1 && job->folio_bytes > PIECE_BYTES)
		share.pieces_per_folio = job->folio_bytes / PIECE_BYTES;
	else if (job->folio_bytes < PIECE_BYTES)
		share.folios_per_piece = PIECE_BYTES / job->folio_bytes;
	share.nr_pieces = (job->nr_folios + share.folios_per_piece - 1) /
			  share.folios_per_piece * share.pieces_per_folio;
	pool_run(nr_threads, copy_pieces, &share);
}
