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

#ifdef CONFIG_HAVE_PREEMPT_DYNAMIC_CALL
/* Boot patches each call of the trampoline into one of the function, unless told preempt=full. */
asm(".globl __SCT__cond_resched\n.set __SCT__cond_resched, __cond_resched");
#endif

#ifdef CONFIG_PREEMPT_DYNAMIC
/* Of a kernel that is booted with preempt=voluntary. kernel/sched/core.c */
bool preempt_model_full(void)
{
	HOST_STUB("stubbed");
	return false;
}
#endif
