// SPDX-License-Identifier: GPL-2.0-only
/*
 * For memremap_pages(): functions that do nothing, and where that is right.
 * See native/host/kernel/kernel.h.
 */
#include <linux/percpu.h>
#include <linux/wait.h>
#include <asm/tlbflush.h>
#include "kernel.h"

/* No CPU has looked up anything in the kernel's page tables. */
void flush_tlb_all(void)
{
	HOST_STUB("stubbed");
}

/* Those of a CPU's own memory are few, and all taken back with the next boot. */
void free_percpu(void __percpu *memory)
{
	HOST_STUB("stubbed");
}

/* One thread runs, so no task waits; a warning reports one that does. */
int __wake_up(struct wait_queue_head *queue, unsigned int mode, int nr, void *key)
{
	HOST_STUB("stubbed");
	WARN_ON(!list_empty(&queue->head));
	return 0;
}

void __wake_up_locked(struct wait_queue_head *queue, unsigned int mode, int nr)
{
	HOST_STUB("stubbed");
	WARN_ON(!list_empty(&queue->head));
}
