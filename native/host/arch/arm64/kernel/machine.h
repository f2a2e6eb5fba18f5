/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what depends on arm64. */
#ifndef REAM_MACHINE_H
#define REAM_MACHINE_H

#include <linux/preempt.h>
#include <linux/sched.h>
#include <asm/sysreg.h>
#include "host.h"

/* The linker places all code between these symbols; see variant.lds. */
extern char host_text[], host_text_end[];

/* Further members of struct host_kernel: code that the program has to patch. */
#define HOST_KERNEL_OF_MACHINE .text = host_text, .text_end = host_text_end,

/* Take over the description of the CPU. Return: the features that alternatives use. */
const unsigned int *host_boot_machine(const struct host_machine *machine);

/* Make the calling thread CPU @cpu, with this per-CPU offset, running @task. */
void host_enter_cpu(unsigned int cpu, unsigned long per_cpu_offset,
		    struct task_struct *task);

/* Place the memmap so that the struct page of frame @pfn is at @map. */
void host_place_map(unsigned long pfn, void *map);

/* Check that the contents of frame @pfn are at @ram, which may be NULL. */
void host_place_contents(unsigned long pfn, void *ram);

/*
 * Set the current task of this CPU, which sp_el0 holds. The task may be preempted.
 * A preempt_count of zero would mean that it needs to reschedule.
 */
static inline void host_set_current(struct task_struct *task)
{
	task_thread_info(task)->preempt_count = PREEMPT_ENABLED;
	write_sysreg((unsigned long)task, sp_el0);
}

#endif
