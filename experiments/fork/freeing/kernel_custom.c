// SPDX-License-Identifier: GPL-2.0-only
/*
 * For unmapping down to the page allocator: functions that are deliberately
 * not the kernel's, and how each differs. See native/host/kernel/kernel.h.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include "kernel.h"

/* mm/mempolicy.c: the policy of the process would be asked for a node; there is one. */
struct page *alloc_pages_noprof(gfp_t flags, unsigned int order)
{
	HOST_STUB("custom");
	return alloc_pages_node_noprof(0, flags, order);
}
