/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of a device that no CPU can access. */
#ifndef REAM_PRIVATE_H
#define REAM_PRIVATE_H

#include <linux/types.h>

#define NR_PRIVATE 512UL	/* pages */

unsigned long first_private(void);

static inline bool is_private(unsigned long pfn)
{
	return pfn - first_private() < NR_PRIVATE;
}

/* Whether the device uses it for a process. */
bool is_taken_private(unsigned long pfn);

/* What the device has in the place of a page. */
const u64 *private_words(unsigned long pfn);

/* At the end, when no process has pages there. */
void close_private(void);

#endif
