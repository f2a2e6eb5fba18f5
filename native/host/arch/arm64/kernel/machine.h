/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what is a matter of arm64. */
#ifndef REAM_MACHINE_H
#define REAM_MACHINE_H

#include <linux/preempt.h>
#include <linux/sched.h>
#include <asm/sysreg.h>
#include "host.h"

/* The linker gathers all code between these; see variant.lds. */
extern char host_text[], host_text_end[];

/* What struct host_kernel has besides: code that the program has to change. */
#define HOST_KERNEL_OF_MACHINE .text = host_text, .text_end = host_text_end,

/* Learn the CPU; the features that alternatives may choose. */
const unsigned int *host_boot_machine(const struct host_machine *machine);

/* The calling thread is CPU @cpu, whose area is this far away, and runs @task. */
void host_enter_cpu(unsigned int cpu, unsigned long per_cpu_offset,
		    struct task_struct *task);

/* Frame @pfn has its descriptor at @map; those of the frames behind it follow. */
void host_place_map(unsigned long pfn, void *map);

/* Likewise its contents, where something looks into frames. */
void host_place_contents(unsigned long pfn, void *ram);

/*
 * Who runs on this CPU: the program has a word for it in each thread. It may be
 * preempted, and nobody asks for that: zero would be a wish to reschedule.
 */
static inline void host_set_current(struct task_struct *task)
{
	task_thread_info(task)->preempt_count = PREEMPT_ENABLED;
	write_sysreg((unsigned long)task, sp_el0);
}

#endif
