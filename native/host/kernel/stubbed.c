// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that do nothing, and why that is correct.
 */
#include <linux/sched.h>
#include "kernel.h"

/* No other task waits for this CPU: the host's kernel schedules the thread. */
int __cond_resched(void)
{
	HOST_STUB("stubbed");
	return 0;
}

#ifdef CONFIG_HAVE_PREEMPT_DYNAMIC_CALL
/* Unless booted with preempt=full, calls of the trampoline are patched to this function. */
asm(".globl __SCT__cond_resched\n.set __SCT__cond_resched, __cond_resched");
#endif

#ifdef CONFIG_PREEMPT_DYNAMIC
/* kernel/sched/core.c: the kernel counts as booted with preempt=voluntary. */
bool preempt_model_full(void)
{
	HOST_STUB("stubbed");
	return false;
}
#endif
