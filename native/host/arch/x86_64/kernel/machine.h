/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what depends on x86-64. */
#ifndef REAM_MACHINE_H
#define REAM_MACHINE_H

#include <linux/percpu.h>
#include <asm/current.h>
#include "host.h"

/* Further members of struct host_kernel: none, as the code needs no patching. */
#define HOST_KERNEL_OF_MACHINE

/* Take over the description of the CPU. Return: the features that alternatives use. */
const unsigned int *host_boot_machine(const struct host_machine *machine);

/* Make the calling thread CPU @cpu, with this per-CPU offset, running @task. */
void host_enter_cpu(unsigned int cpu, unsigned long per_cpu_offset,
		    struct task_struct *task);

/* Place the memmap so that the struct page of frame @pfn is at @map. */
void host_place_map(unsigned long pfn, void *map);

/* Place the direct map so that the contents of frame @pfn are at @ram. */
void host_place_contents(unsigned long pfn, void *ram);

/* Set the current task of this CPU. */
static inline void host_set_current(struct task_struct *task)
{
#ifdef HAVE_PCPU_HOT
	this_cpu_write(pcpu_hot.current_task, task);
#else
	this_cpu_write(current_task, task);
#endif
}

#endif
