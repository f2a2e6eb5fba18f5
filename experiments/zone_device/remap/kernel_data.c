// SPDX-License-Identifier: GPL-2.0-only
/*
 * For memremap_pages(): the kernel's variables that it reads, each with the
 * value it needs. See native/host/kernel/data.c. What is weak here is another
 * object's in some kernels.
 */
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/spinlock.h>
#include <linux/swap.h>
#include <asm/page.h>
#include "kernel.h"
#include "remap_kernel.h"

/* The kernel's own page tables: empty, and no CPU looks up addresses in them. head_64.S */
pgd_t init_top_pgt[PTRS_PER_PGD] __aligned(PAGE_SIZE);

/* No process has page tables to be kept alike. arch/x86/mm/fault.c */
DEFINE_SPINLOCK(pgd_lock);
LIST_HEAD(pgd_list);

/* The node's end, set with it. arch/x86/kernel/setup.c, mm/memory.c */
unsigned long max_low_pfn_mapped;
unsigned long max_pfn_mapped;
unsigned long highest_memmap_pfn __weak;
void *high_memory __weak;

/* As far as four levels of page tables reach. arch/x86/mm/kaslr.c, under two names */
unsigned long physmem_end = (1UL << 46) - 1;
unsigned long direct_map_physmem_end = (1UL << 46) - 1;

/* As the kernel has them; nothing is reclaimed. mm/vmscan.c */
int sysctl_min_unmapped_ratio = 1;
int sysctl_min_slab_ratio = 5;
