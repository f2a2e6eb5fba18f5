// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the compact experiment: the kernel's variables that it reads, each with
 * the value it needs. See native/host/kernel/data.c.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/mempolicy.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include "kernel.h"

/* Swap offsets of x86-64 have room for two bits beside a frame. mm/swapfile.c */
bool swap_migration_ad_supported = true;

/* There is no swap: nothing that is anonymous can be reclaimed. mm/swapfile.c */
atomic_long_t nr_swap_pages;
long total_swap_pages;

/* glue.c says when the boot is over. init/main.c */
enum system_states system_state;

/* Set with the node's sections. mm/sparse.c */
unsigned long __highest_present_section_nr;

/* What boot() has set in the mask of those online. kernel/cpu.c */
atomic_t __num_online_cpus = ATOMIC_INIT(1);

/* Set from the zones, and not read here. mm/mempolicy.c */
enum zone_type policy_zone;

/* There is no slower memory. mm/memory-tiers.c */
bool numa_demotion_enabled;
