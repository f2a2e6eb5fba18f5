/* SPDX-License-Identifier: GPL-2.0-only */
/* What calls of mm have in common. */
#ifndef REAM_CALLS_H
#define REAM_CALLS_H

#include <linux/mm_types.h>

#define MOST_PAGES 64L

extern struct page *pages[MOST_PAGES];

/* Fill @pages, which is -ENOMEM if not all are there; and give them back: -ENOMEM. */
long take_pages(long nr);
long free_pages_of(long nr);

#define CALL(name_) long call_##name_(long start, long bytes, long x, long y);
#include "calls.def"
#undef CALL

#endif
