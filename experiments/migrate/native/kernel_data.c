// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the migrate experiment: the kernel's variables that it reads, each with
 * the value it needs. See native/host/kernel/data.c.
 */
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/percpu_counter.h>
#include <linux/pgtable.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <asm/processor.h>
#include "kernel.h"

/* Set by glue.c: where the contents of frames lie. arch/x86/kernel/head64.c */
unsigned long page_offset_base;

/* Read with every address, used for those of the kernel's image alone. */
unsigned long phys_base;

/* Four levels of page tables: LA57 is not among the allowed features. */
unsigned int pgdir_shift = 39;
unsigned int ptrs_per_p4d = 1;

/* Zero would silently strip the present bit. arch/x86/mm/init.c */
pteval_t __supported_pte_mask = ~0;
pteval_t __default_kernel_pte_mask = ~0;

/* The host sets which of them have CPUs. mm/page_alloc.c */
nodemask_t node_states[NR_NODE_STATES];

/* What a page of a folio that is split is compared with. arch/x86/kernel/head_64.S */
unsigned long empty_zero_page[PAGE_SIZE / sizeof(unsigned long)] __page_aligned_bss;

/* What the kernel starts with on up to 16 CPUs. lib/percpu_counter.c */
int percpu_counter_batch = 32;

/* Swap offsets of x86-64 have room for two bits beside a frame. mm/swapfile.c */
bool swap_migration_ad_supported = true;
