// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the fork experiment: the kernel's variables that it reads, each with
 * the value it needs. See native/host/kernel/data.c.
 */
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/percpu_counter.h>
#include <linux/pgtable.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <asm/processor.h>
#include "kernel.h"
#include "fork_kernel.h"

/* Set by glue.c: where the contents of frames lie. arch/x86/kernel/head64.c */
unsigned long page_offset_base;

/* Read with every address, used for those of the kernel's image alone. */
unsigned long phys_base;

/* Four levels of page tables: LA57 is not among the allowed features. */
unsigned int pgdir_shift = 39;
unsigned int ptrs_per_p4d = 1;

/* Zero would silently strip the present bit. arch/x86/mm/init.c */
pteval_t __supported_pte_mask = ~0;
pteval_t __default_kernel_pte_mask = ~0;

/* The host sets which of them have CPUs. mm/page_alloc.c */
nodemask_t node_states[NR_NODE_STATES];

/* What the kernel starts with on up to 16 CPUs. lib/percpu_counter.c */
int percpu_counter_batch = 32;

/* The init_mm's swap list; a child joins it behind its parent. */
DEFINE_SPINLOCK(mmlist_lock);

/* Who runs here. Its flags say that nobody wants the CPU. */
static struct task_struct task;

struct task_struct *fork_current(void)
{
	this_cpu_write(pcpu_hot.current_task, &task);
	return &task;
}
