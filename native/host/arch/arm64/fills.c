// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kinds of fills on arm64: store pairs with a non-temporal hint, and ordinary
 * store pairs.
 */
#include "program.h"

static bool always(void)
{
	return true;
}

static void fill_stnp(unsigned char *to, size_t bytes, uint64_t word)
{
	for (unsigned char *line = to; line < to + bytes; line += 64)
		asm volatile("stnp %1, %1, [%0]\n\t"
			     "stnp %1, %1, [%0, #16]\n\t"
			     "stnp %1, %1, [%0, #32]\n\t"
			     "stnp %1, %1, [%0, #48]"
			     : : "r" (line), "r" (word) : "memory");
}

static void fill_stp(unsigned char *to, size_t bytes, uint64_t word)
{
	for (unsigned char *line = to; line < to + bytes; line += 64)
		asm volatile("stp %1, %1, [%0]\n\t"
			     "stp %1, %1, [%0, #16]\n\t"
			     "stp %1, %1, [%0, #32]\n\t"
			     "stp %1, %1, [%0, #48]"
			     : : "r" (line), "r" (word) : "memory");
}

const struct fill_kind fill_kinds[] = {
	{ "stnp-16", true, always, fill_stnp },
	{ "stp-16", false, always, fill_stp },
	{ .name = NULL },
};

void fill_drain(void)
{
	asm volatile("dsb ishst" : : : "memory");
}
