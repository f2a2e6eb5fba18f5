// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's own test of copies, given a memcpy_streaming() without a tail. */
#include <linux/align.h>
#include <linux/string.h>

static __always_inline void forgets_its_tail(void *dst, const void *src,
					     size_t cnt)
{
	memcpy_streaming(dst, src, ALIGN_DOWN(cnt, 8));
}

#define memcpy_streaming forgets_its_tail
#include <lib/memcpy_kunit.c>
