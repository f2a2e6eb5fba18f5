/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted mm: what the words in host_boot_words() choose. */
#ifndef REAM_PATCHED_H
#define REAM_PATCHED_H

#include <linux/types.h>

/*
 * Patch the sites that boot patches before alternatives. Return: the CPU features
 * that choose the alternatives. boot_cpu_data, which code reads, is unchanged.
 */
const unsigned int *patch_kernel(const unsigned int *features);

/* Whether the memmap is mapped by huge pages, as that of a real kernel is. */
bool wants_huge_map(void);

/* Whether the memory controller is off, as by cgroup_disable=memory. */
bool wants_no_groups(void);

#endif
