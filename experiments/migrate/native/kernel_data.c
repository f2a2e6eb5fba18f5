// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the migrate experiment: the kernel's variables that it reads, each with
 * the value it needs. See native/host/kernel/data.c.
 */
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <asm/processor.h>
#include "kernel.h"

/* What a page of a folio that is split is compared with. arch/x86/kernel/head_64.S */
#ifdef HAVE_EMPTY_ZERO_PAGE_WORDS
unsigned long empty_zero_page[PAGE_SIZE / sizeof(unsigned long)] __page_aligned_bss;
#else
const u8 empty_zero_page[PAGE_SIZE] __page_aligned_bss;
struct page *__zero_page;
unsigned long zero_page_pfn;
#endif

/* Swap offsets of x86-64 have room for two bits beside a frame. mm/swapfile.c */
bool swap_migration_ad_supported = true;
