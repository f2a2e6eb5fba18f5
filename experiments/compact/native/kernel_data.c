// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the compact experiment: the kernel's variables that it reads, each with
 * the value it needs. See native/host/kernel/data.c.
 */
#include <linux/mm.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include "kernel.h"

/* Swap offsets of x86-64 have room for two bits beside a frame. mm/swapfile.c */
bool swap_migration_ad_supported = true;
