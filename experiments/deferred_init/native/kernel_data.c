// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the deferred-init experiment: the kernel's variables that it reads, each
 * with the value it needs. See native/host/kernel/data.c.
 */
#include <linux/atomic.h>
#include <linux/mm.h>
#include "kernel.h"

/* mm/memory.c. memmap_init_range() raises it to the last frame that it has seen. */
unsigned long highest_memmap_pfn;

/* mm/show_mem.c. A boot begins with none. */
atomic_long_t _totalram_pages;

/* mm/sparse.c. A boot looks at no section behind it. */
unsigned long __highest_present_section_nr;
