/* SPDX-License-Identifier: GPL-2.0-only */
/* A range of memory page by page: what the kernel shows of it, and its protection. */
#ifndef REAM_PAGES_H
#define REAM_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct pages - what a range was like when it was looked at
 * @nr: Its pages.
 * @entries: Of /proc/self/pagemap.
 * @words: The first word of each page that was there.
 */
struct pages {
	size_t nr;
	uint64_t *entries;
	uint64_t *words;
};

/* Take memory for as many pages, and open what is read later. */
void pages_prepare(struct pages *pages, size_t nr);

/* Look at the range that begins at @at, which may be read. */
void pages_look(struct pages *pages, const char *at);

/* Whether a page was there. */
bool page_was_there(const struct pages *pages, size_t page);

/* How many of @nr pages from @first on were there. */
size_t pages_there(const struct pages *pages, size_t first, size_t nr);

/**
 * pages_are_at() - compare what is at @at with what @nr pages from @first on were
 * @what: What was done meanwhile, for the message.
 *
 * Where a page was, the same one is, mapped as often, of the same kind; where
 * none was, none is. Only the soft-dirty bit may differ. Exits with
 * EXIT_NOT_VERIFIED otherwise.
 *
 * Return: false if a page has another frame: the kernel moved it meanwhile.
 */
bool pages_are_at(const struct pages *pages, size_t first, size_t nr,
		  const char *at, const char *what);

/* The same of contents: exit if a page at @at, which may be read, holds other. */
void pages_hold(const struct pages *pages, size_t first, size_t nr,
		const char *at, const char *what);

/* Exit if one of @nr pages at @at is mapped after @what. */
void pages_verify_gone(const char *at, size_t nr, const char *what);

/**
 * pages_forget_writes() - have the kernel note from now on which pages are written
 *
 * Return: false if this kernel notes nothing (CONFIG_MEM_SOFT_DIRTY).
 */
bool pages_forget_writes(void);

/* How many of @nr pages at @at are written since then, as the kernel says. */
size_t pages_written(const char *at, size_t nr);

/**
 * enum access - what a program may do with a page
 * @MAY_NOTHING: Reading is refused.
 * @MAY_READ: Writing is refused.
 * @MAY_WRITE: Nothing is refused.
 */
enum access { MAY_NOTHING, MAY_READ, MAY_WRITE };

/**
 * pages_may() - use each of @nr pages at @at, and see what is allowed
 *
 * Pages that were not there are used only if all use is refused. What is
 * written is what a page holds. Exits with EXIT_NOT_VERIFIED if more or less is
 * allowed than @access.
 *
 * Return: how many page faults that took, besides those that refuse.
 */
long pages_may(const struct pages *pages, size_t first, size_t nr, char *at,
	       enum access access, const char *what);

/**
 * struct mapped - what smaps has to say of a range
 * @nr_vmas: That lie in it, and in nothing else.
 * @nr_bytes: That they have together.
 * @perms: Of each of them: "rw-p".
 * @kib: That is mapped, and was written.
 */
struct mapped {
	size_t nr_vmas, nr_bytes;
	const char *perms;
	size_t kib;
};

/* Exit unless smaps says so of @nr_bytes at @at after @what, and no PMD maps any. */
void pages_mapped_as(const char *at, size_t nr_bytes,
		     const struct mapped *wanted, const char *what);

#endif
