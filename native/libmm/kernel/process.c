// SPDX-License-Identifier: GPL-2.0-only
/* Includes kernel/fork.c, because copy_mm() is static. */
#include "../kernel/fork.c"
#include "hosted.h"

int process_copy_mm(struct task_struct *child)
{
	return copy_mm(0, child);
}
