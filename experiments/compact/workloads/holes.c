// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "holes.h"
#include "program.h"

#define WORD_STEP 0x9e3779b97f4a7c15ULL	/* odd: no two words are alike */

void *holes_map(size_t nr_bytes)
{
	char *at = mmap(NULL, nr_bytes + BLOCK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		die(EXIT_CANNOT_RUN, "map %zu bytes: %s", nr_bytes,
		    strerror(errno));
	return at + (-(uintptr_t)at & (BLOCK_BYTES - 1));
}

bool holes_is_hole(const struct holes *holes, size_t page)
{
	size_t group = page / holes->hole_every;
	size_t which = holes->hole_every - 1;

	if (group == holes->nr_pages / holes->hole_every)
		return holes->few_used;	/* the rest, which is no group */
	if (holes->scattered)
		which = mixed(mixed(holes->seed) + group) % holes->hole_every;
	return (page % holes->hole_every == which) != holes->few_used;
}

size_t holes_nr_resident(const struct holes *holes)
{
	size_t nr_groups = holes->nr_pages / holes->hole_every;

	return holes->few_used ? nr_groups : holes->nr_pages - nr_groups;
}

static uint64_t first_word(const struct holes *holes, size_t page)
{
	return mixed(holes->seed ^ mixed(page));
}

/* The loops over a page's words are for the compiler to vectorise. */
static void write_page(uint64_t *words, uint64_t first)
{
	for (size_t i = 0; i < PAGE_WORDS; i++)
		words[i] = first + i * WORD_STEP;
}

static bool is_right(const uint64_t *words, uint64_t first)
{
	uint64_t difference = 0;

	for (size_t i = 0; i < PAGE_WORDS; i++)
		difference |= words[i] ^ (first + i * WORD_STEP);
	return !difference;
}

static void find_wrong(const uint64_t *words, uint64_t first, size_t page,
		       struct holes_finding *wrong)
{
	for (size_t i = 0; i < PAGE_WORDS; i++) {
		if (words[i] == first + i * WORD_STEP)
			continue;
		if (!wrong->nr_words++) {
			wrong->page = page;
			wrong->word = i;
		}
	}
}

void holes_write(const struct holes *holes, size_t page, size_t end)
{
	for (; page < end; page++)
		if (!holes_is_hole(holes, page))
			write_page(holes->at + page * PAGE_WORDS,
				   first_word(holes, page));
}

void holes_punch(const struct holes *holes, size_t page, size_t end)
{
	for (; page < end; page++)
		if (holes_is_hole(holes, page) &&
		    madvise(holes->at + page * PAGE_WORDS, PAGE_BYTES,
			    MADV_DONTNEED))
			die(EXIT_FAILED, "give back page %zu: %s", page,
			    strerror(errno));
}

void holes_make(const struct holes *holes, size_t page, size_t end)
{
	holes_write(holes, page, end);
	holes_punch(holes, page, end);
}

struct holes_finding holes_verify(const struct holes *holes)
{
	struct holes_finding wrong = { 0 };

	for (size_t page = 0; page < holes->nr_pages; page++) {
		const uint64_t *words = holes->at + page * PAGE_WORDS;
		uint64_t first = first_word(holes, page);

		if (!holes_is_hole(holes, page) && !is_right(words, first))
			find_wrong(words, first, page, &wrong);
	}
	return wrong;
}
