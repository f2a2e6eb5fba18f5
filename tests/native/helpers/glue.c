// SPDX-License-Identifier: GPL-2.0-only
/*
 * The helpers that the zone-device series adds to headers, called as the
 * kernel calls them. Each check returns 0, or the line of what was wrong.
 */
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/string.h>
#include "kernel.h"

#define ROOM 256
#define GUARD 0xee

struct helper_checks {
	int (*streaming)(void);
	int (*flushcache)(void);
	int (*section)(void);
};

static u8 source[ROOM], target[ROOM] __aligned(64);

/* @target was all guard bytes before @cnt bytes were copied to @offset. */
static bool copied(size_t offset, size_t cnt)
{
	size_t i;

	for (i = 0; i < ROOM; i++) {
		bool inside = i >= offset && i < offset + cnt;

		if (target[i] != (inside ? source[i - offset] : GUARD))
			return false;
	}
	return true;
}

static void prepare(void)
{
	size_t i;

	for (i = 0; i < ROOM; i++) {
		source[i] = 3 * i + 1;
		target[i] = GUARD;
	}
}

/*
 *   offset 0 .. 15, count 0 .. 130: aligned and not, whole words and not
 * Expect: exactly the bytes asked for, as memcpy() would.
 */
static int check_streaming(void)
{
	size_t offset, cnt;

	for (offset = 0; offset < 16; offset++) {
		for (cnt = 0; cnt <= 130; cnt++) {
			prepare();
			memcpy_streaming(target + offset, source, cnt);
			memcpy_streaming_drain();
			if (!copied(offset, cnt))
				return __LINE__;
		}
	}
	return 0;
}

/* The compiler knows @cnt, as it does of sizeof(struct page). */
static __always_inline int check_size(const size_t cnt)
{
	size_t offset;

	for (offset = 0; offset < 16; offset++) {
		prepare();
		memcpy_flushcache(target + offset, source, cnt);
		memcpy_streaming_drain();
		if (!copied(offset, cnt))
			return cnt;
		prepare();
		memcpy_streaming(target + offset, source, cnt);
		memcpy_streaming_drain();
		if (!copied(offset, cnt))
			return cnt;
	}
	return 0;
}

/* Sizes with a path of their own, and between: 0, or the one that failed. */
static int check_flushcache(void)
{
	return check_size(4) ?: check_size(8) ?: check_size(12) ?:
	       check_size(16) ?: check_size(24) ?: check_size(32) ?:
	       check_size(33) ?: check_size(40) ?: check_size(48) ?:
	       check_size(56) ?: check_size(64) ?: check_size(72) ?:
	       check_size(80) ?: check_size(88) ?: check_size(96) ?:
	       check_size(128);
}

/*
 * Expect: with classic sparse memory the section of @pfn and no other bit of
 * the flags; with any other model the flags as they were.
 */
static int check_section(void)
{
	static const unsigned long before[] = { 0, ~0UL, BIT(PG_reserved) };
	unsigned long i, nr;

	for (i = 0; i < ARRAY_SIZE(before); i++) {
		for (nr = 0; nr < 4096; nr = nr * 3 + 1) {
			struct page page = { .flags = before[i] };

			set_page_section_from_pfn(&page, section_nr_to_pfn(nr));
#ifdef SECTION_IN_PAGE_FLAGS
			if (page_to_section(&page) != nr)
				return __LINE__;
			page.flags ^= before[i];
			page.flags &= ~(SECTIONS_MASK << SECTIONS_PGSHIFT);
			if (page.flags)
				return __LINE__;
#else
			if (page.flags != before[i])
				return __LINE__;
#endif
		}
	}
	return 0;
}

static const struct helper_checks checks = {
	.streaming = check_streaming,
	.flushcache = check_flushcache,
	.section = check_section,
};

const void *const host_experiment_ops = &checks;

const struct host_fact host_experiment_facts[] = {
#ifdef SECTION_IN_PAGE_FLAGS
	{ "section_in_page_flags", 1 },
#else
	{ "section_in_page_flags", 0 },
#endif
	{ }
};
