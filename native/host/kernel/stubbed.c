// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that do nothing, and where that is right.
 */
#include <linux/sched.h>
#include "kernel.h"

/* Nobody else wants this CPU: the thread is scheduled by the host's kernel. */
int __cond_resched(void)
{
	HOST_STUB("stubbed");
	return 0;
}
