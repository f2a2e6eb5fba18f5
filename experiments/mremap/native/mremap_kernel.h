/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what the mremap experiment's substitutes offer glue.c. */
#ifndef REAM_MREMAP_KERNEL_H
#define REAM_MREMAP_KERNEL_H

#include "mremap.h"

extern unsigned long highest_memmap_pfn;

#endif
