// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the mprotect experiment: the kernel's variables that it reads, each with
 * the value it needs. See native/host/kernel/data.c.
 */
#include <linux/mm.h>
#include <linux/percpu.h>
#include "mprotect_kernel.h"

/* No frame here is the page of zeroes. mm/mm_init.c */
unsigned long zero_page_pfn = ULONG_MAX;

/* Every CPU is of node 0, as every page is. mm/page_alloc.c */
DEFINE_PER_CPU(int, numa_node);
