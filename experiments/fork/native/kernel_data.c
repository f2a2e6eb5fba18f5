// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the fork experiment: the kernel's variables that it reads, each with
 * the value it needs. See native/host/kernel/data.c.
 */
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <asm/processor.h>
#include "kernel.h"
#include "fork_kernel.h"

/* The init_mm's swap list; a child joins it behind its parent. */
DEFINE_SPINLOCK(mmlist_lock);

/* The current task. Its flags never ask for a reschedule. */
static struct task_struct task;

struct task_struct *fork_current(void)
{
	host_set_current(&task);
	return &task;
}

/* Head of the list of mms that have swap entries. mm/init-mm.c */
struct mm_struct init_mm;

/* No frame here is the page of zeroes. mm/mm_init.c */
unsigned long zero_page_pfn = ULONG_MAX;
