/* SPDX-License-Identifier: GPL-2.0-only */
/* Device private memory, which no CPU can access. */
#ifndef REAM_PRIVATE_H
#define REAM_PRIVATE_H

#include <linux/types.h>

#define NR_PRIVATE 512UL	/* pages */

unsigned long first_private(void);

static inline bool is_private(unsigned long pfn)
{
	return pfn - first_private() < NR_PRIVATE;
}

/* Whether the device uses this page for a process. */
bool is_taken_private(unsigned long pfn);

/* Contents of a device private page, in the device's memory. */
const u64 *private_words(unsigned long pfn);

/* Remove the memory at the end, when no process uses it any more. */
void close_private(void);

#endif
