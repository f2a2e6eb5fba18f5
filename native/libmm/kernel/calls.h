/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared parts of the functions that calls.def lists. */
#ifndef REAM_CALLS_H
#define REAM_CALLS_H

#include <linux/mm_types.h>

#define MOST_PAGES 64L

extern struct page *pages[MOST_PAGES];

/* Fill @pages, or return -ENOMEM; and free them again, which returns -ENOMEM. */
long take_pages(long nr);
long free_pages_of(long nr);

#define CALL(name_) long call_##name_(long start, long bytes, long x, long y);
#include "calls.def"
#undef CALL

#endif
