/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what the mprotect experiment's substitutes offer glue.c. */
#ifndef REAM_MPROTECT_KERNEL_H
#define REAM_MPROTECT_KERNEL_H

#include "mprotect.h"

extern unsigned long highest_memmap_pfn;

#endif
