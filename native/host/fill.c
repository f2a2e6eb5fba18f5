// SPDX-License-Identifier: GPL-2.0-only
/*
 * The physical limit: the same bytes, written with nothing to think about.
 *
 * Non-temporal stores of 8, 32 and 64 bytes, and the string store. Each fills
 * a run of whole cache lines in address order, as a memory map is written.
 */
#include <immintrin.h>
#include "program.h"

static bool always(void)
{
	return true;
}

static void fill_movnti(unsigned char *to, size_t bytes, uint64_t word)
{
	/* Eight stores in a row: a loop over them would cost more than they do. */
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

/*
 * Pieces are handed out as CPUs get to them, so that a CPU that is disturbed
 * delays the whole by no more than its last piece. @next is all they share.
 */
#define PIECE_BYTES (2UL << 20)

struct fill_job {
	const struct fill_kind *kind;
	const struct fill_range *range;
	uint64_t word;
	size_t blocks_per_piece;	/* 0 = the range is one block, cut up */
	size_t nr_pieces;
	size_t next;
};

static void fill_piece(const struct fill_job *job, size_t piece)
{
	const struct fill_range *range = job->range;
	size_t block, end;

	if (!job->blocks_per_piece) {
		size_t from = piece * PIECE_BYTES;

		job->kind->fill(range->start + from,
				min_size(PIECE_BYTES, range->block_bytes - from), job->word);
		return;
	}
	block = piece * job->blocks_per_piece;
	end = min_size(block + job->blocks_per_piece, range->nr_blocks);
	for (; block < end; block++)
		job->kind->fill(range->start + block * range->stride_bytes,
				range->block_bytes, job->word);
}

static void fill_pieces(void *context, unsigned int index, unsigned int nr)
{
	struct fill_job *job = context;

	(void)index;
	(void)nr;
	for (;;) {
		size_t piece = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);

		if (piece >= job->nr_pieces)
			break;
		fill_piece(job, piece);
	}
	_mm_sfence();	/* drained before this CPU counts as done */
}

void fill_range(const struct fill_kind *kind, const struct fill_range *range,
		uint64_t word, unsigned int nr_threads)
{
	struct fill_job job = { .kind = kind, .range = range, .word = word };

	if (nr_threads == 1) {
		/* Uncut: a string store has to see a long way to go past the cache. */
		job.blocks_per_piece = range->nr_blocks;
		job.nr_pieces = 1;
	} else if (range->nr_blocks > 1) {
		job.blocks_per_piece = PIECE_BYTES / min_size(range->block_bytes, PIECE_BYTES);
		job.nr_pieces = (range->nr_blocks + job.blocks_per_piece - 1) /
				job.blocks_per_piece;
	} else {
		job.nr_pieces = (range->block_bytes + PIECE_BYTES - 1) / PIECE_BYTES;
	}
	pool_run(nr_threads, fill_pieces, &job);
}
