/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what the migrate experiment's substitutes offer glue.c. */
#ifndef REAM_MIGRATE_KERNEL_H
#define REAM_MIGRATE_KERNEL_H

#include <linux/types.h>
#include "migrate.h"

struct folio;
struct page;

#ifndef HAVE_EMPTY_ZERO_PAGE_WORDS
extern unsigned long zero_page_pfn;
#endif
#ifndef HAVE_DEFERRED_SPLIT_QUEUE
extern struct list_lru deferred_split_lru;
#endif

/* Forget all allocations and counts, and go by @request from now on. */
void migrate_reset(const struct migrate_request *request);
void migrate_read_counts(struct migrate_result *result);

/* A target is asked for: @src is unmapped next, if at all. */
void migrate_note_asked(struct folio *src);

/* A page is read to be copied: no TLB may allow a write to it any more. */
void migrate_check_flushed(struct page *page);

/* Whether @number is one of @nr ascending ones. */
bool migrate_among(unsigned long number, const unsigned long *numbers, unsigned long nr);

/*
 * A series' own, where there is one: linked with --wrap, so that a copy asks
 * kernel_custom.c, too.
 */
unsigned long __real___copy_mc_page_streaming(void *to, const void *from);
unsigned long __wrap___copy_mc_page_streaming(void *to, const void *from);

#endif
