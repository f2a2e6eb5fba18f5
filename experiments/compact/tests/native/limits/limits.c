// SPDX-License-Identifier: GPL-2.0-only
/*
 * isolation_limit() of mm/compaction.c, cut out of a patched source, with the
 * sizes of a kernel that is not built here: PAGE_SIZE, pageblock_order. Prints
 * for each order of a request how many pages are isolated at once.
 */
#include <stdio.h>

#define SZ_2M 0x200000UL
#define COMPACT_CLUSTER_MAX 32UL
#define PAGE_ALLOC_COSTLY_ORDER 3
#define pageblock_nr_pages (1UL << pageblock_order)

struct compact_control {
	int order;
};

static unsigned long min(unsigned long a, unsigned long b)
{
	return a < b ? a : b;
}

static unsigned long max(unsigned long a, unsigned long b)
{
	return a > b ? a : b;
}

/* There is no clamp(): the kernel's wants to know at build that low is not above high. */
static unsigned long min3(unsigned long a, unsigned long b, unsigned long c)
{
	return min(min(a, b), c);
}

#include "isolation_limit.h"

int main(void)
{
	for (int order = -1; order <= pageblock_order; order++) {
		const struct compact_control request = { .order = order };

		printf("%d %u\n", order, isolation_limit(&request));
	}
	return 0;
}
