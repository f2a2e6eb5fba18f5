/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted mm: what words that boot is told choose. */
#ifndef REAM_PATCHED_H
#define REAM_PATCHED_H

#include <linux/types.h>

/*
 * Patch what is patched before alternatives are applied. Returns the features
 * by which these are chosen: what code asks of boot_cpu_data stays as it is.
 */
const unsigned int *patch_kernel(const unsigned int *features);

/* Whether the descriptors of frames are to lie in huge pages, as a kernel's do. */
bool wants_huge_map(void);

/* Whether the memory controller is off, as by cgroup_disable=memory. */
bool wants_no_groups(void);

#endif
