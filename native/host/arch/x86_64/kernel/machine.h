/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what is a matter of x86-64. */
#ifndef REAM_MACHINE_H
#define REAM_MACHINE_H

#include <linux/percpu.h>
#include <asm/current.h>
#include "host.h"

/* What struct host_kernel has besides: nothing, all code runs as it is. */
#define HOST_KERNEL_OF_MACHINE

/* Learn the CPU; the features that alternatives may choose. */
const unsigned int *host_boot_machine(const struct host_machine *machine);

/* The calling thread is CPU @cpu, whose area is this far away, and runs @task. */
void host_enter_cpu(unsigned int cpu, unsigned long per_cpu_offset,
		    struct task_struct *task);

/* Frame @pfn has its descriptor at @map; those of the frames behind it follow. */
void host_place_map(unsigned long pfn, void *map);

/* Likewise its contents, where something looks into frames. */
void host_place_contents(unsigned long pfn, void *ram);

/* Who runs on this CPU. */
static inline void host_set_current(struct task_struct *task)
{
#ifdef HAVE_PCPU_HOT
	this_cpu_write(pcpu_hot.current_task, task);
#else
	this_cpu_write(current_task, task);
#endif
}

#endif
