// SPDX-License-Identifier: GPL-2.0-only
/*
 * For a fork as a call: the variant's own kernel/fork.c, and one more caller of
 * its static copy_mm(). That is inlined into copy_process() where nobody else
 * calls it, so kernel/fork.o alone has no such function: this object takes its
 * place, and has nothing else of ours.
 */
#include "../kernel/fork.c"
#include "calling_kernel.h"

int calling_copy_mm(struct task_struct *task)
{
	return copy_mm(0, task);
}

/* What identifies address spaces is taken back with the node. */
void calling_reset_ids(void)
{
#ifdef CONFIG_MM_ID
	ida_init(&mm_ida);
#endif
}
