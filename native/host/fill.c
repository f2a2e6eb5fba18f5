// SPDX-License-Identifier: GPL-2.0-only
/*
 * The physical limit: the same bytes are written without any computation.
 *
 * Each kind of fill of an architecture (arch/) writes whole cache lines in
 * address order, as a memory map is written.
 */
#include "program.h"

/*
 * CPUs take pieces one by one, so that an interrupted CPU delays the whole by at
 * most its last piece. The CPUs share only @next.
 */
#define PIECE_BYTES (2UL << 20)

struct fill_job {
	const struct fill_kind *kind;
	const struct fill_range *range;
	uint64_t word;
	size_t blocks_per_piece;	/* 0 = the range is one block, cut into pieces */
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
	fill_drain();	/* drained before this CPU counts as done */
}

void fill_range(const struct fill_kind *kind, const struct fill_range *range,
		uint64_t word, unsigned int nr_threads)
{
	struct fill_job job = { .kind = kind, .range = range, .word = word };

	if (nr_threads == 1) {
		/* Do not cut it: only a long string store bypasses the cache. */
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
