// SPDX-License-Identifier: GPL-2.0-only
/* Contents of test pages: words that depend on the page and on their place in it. */
#include <string.h>
#include "contents.h"
#include "program.h"

#define NR_WORDS (PAGE_BYTES / sizeof(uint64_t))
#define SPOILT 0x5a5a5a5a5a5a5a5aULL	/* even, unlike all words of pages */

/* The factors are odd, so that no two words of a page and no two pages are equal. */
#define PAGE_FACTOR 0x9e3779b97f4a7c15ULL
#define WORD_FACTOR 0xd1342543de82ef95ULL

static void make_page(uint64_t *to, uint64_t page)
{
	uint64_t sum = (page + 1) * PAGE_FACTOR;

	for (size_t i = 0; i < NR_WORDS; i++, sum += WORD_FACTOR)
		to[i] = sum | 1;
}

static bool is_page(const uint64_t *words, uint64_t page)
{
	uint64_t sum = (page + 1) * PAGE_FACTOR;

	for (size_t i = 0; i < NR_WORDS; i++, sum += WORD_FACTOR)
		if (words[i] != (sum | 1))
			return false;
	return true;
}

struct contents_job {
	unsigned char *start;
	const int64_t *pages;
	size_t nr_pages;
	size_t first_wrong;
};

/* The share of one thread: sets @first. Return: the end. */
static size_t share_end(const struct contents_job *job, unsigned int index, unsigned int nr,
			size_t *first)
{
	*first = job->nr_pages * index / nr;
	return job->nr_pages * (index + 1) / nr;
}

static void fill_share(void *context, unsigned int index, unsigned int nr)
{
	const struct contents_job *job = context;
	size_t page, end = share_end(job, index, nr, &page);

	for (; page < end; page++) {
		int64_t which = job->pages ? job->pages[page] : (int64_t)page;

		if (which != CONTENTS_ANY)
			make_page((uint64_t *)(job->start + page * PAGE_BYTES), (uint64_t)which);
	}
}

void contents_fill(unsigned char *start, const int64_t *pages, size_t nr_pages,
		   unsigned int nr_threads)
{
	struct contents_job job = { .start = start, .pages = pages, .nr_pages = nr_pages };

	pool_run(nr_threads, fill_share, &job);
}

void contents_spoil(unsigned char *start, size_t nr_pages, unsigned int nr_threads)
{
	const struct fill_range range = {
		.start = start,
		.block_bytes = nr_pages * PAGE_BYTES,
		.stride_bytes = nr_pages * PAGE_BYTES,
		.nr_blocks = 1,
	};

	fill_range(&fill_kinds[0], &range, SPOILT, nr_threads);
}

bool contents_is_spoilt(const unsigned char *frame)
{
	const uint64_t *word = (const uint64_t *)frame;

	for (size_t i = 0; i < NR_WORDS; i++)
		if (word[i] != SPOILT)
			return false;
	return true;
}

static void compare_share(void *context, unsigned int index, unsigned int nr)
{
	struct contents_job *job = context;
	size_t frame, end = share_end(job, index, nr, &frame);
	size_t first = __atomic_load_n(&job->first_wrong, __ATOMIC_RELAXED);

	for (; frame < end; frame++) {
		const uint64_t *words = (const uint64_t *)(job->start + frame * PAGE_BYTES);

		if (job->pages[frame] != CONTENTS_ANY &&
		    !is_page(words, (uint64_t)job->pages[frame]))
			break;
	}
	/* Keep the lowest index that any thread found. */
	while (frame < end && frame < first &&
	       !__atomic_compare_exchange_n(&job->first_wrong, &first, frame, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

size_t contents_first_wrong(const unsigned char *start, const int64_t *pages,
			    size_t nr_pages, unsigned int nr_threads)
{
	struct contents_job job = {
		.start = (unsigned char *)start, .pages = pages,
		.nr_pages = nr_pages, .first_wrong = CONTENTS_FINE,
	};

	pool_run(nr_threads, compare_share, &job);
	return job.first_wrong;
}

size_t contents_first_byte(const unsigned char *frame, int64_t page)
{
	uint64_t expected[NR_WORDS];
	size_t at = 0;

	make_page(expected, (uint64_t)page);
	while (at < PAGE_BYTES && frame[at] == ((const unsigned char *)expected)[at])
		at++;
	return at;
}
