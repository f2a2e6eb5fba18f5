// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the deferred-init experiment: functions that are deliberately not the
 * kernel's, and how each differs. See native/host/kernel/kernel.h for the
 * kinds.
 */
#include <linux/sched.h>
#include <linux/wait.h>
#include "kernel.h"

/* A pool thread stays on the CPU it is pinned to. */
int set_cpus_allowed_ptr(struct task_struct *task, const struct cpumask *mask)
{
	HOST_STUB("custom");
	return 0;
}

/* Nobody waits for a node's daemons, and a lock class is of lockdep alone. */
void __init_waitqueue_head(struct wait_queue_head *head, const char *name,
			   struct lock_class_key *key)
{
	HOST_STUB("custom");
	spin_lock_init(&head->lock);
	INIT_LIST_HEAD(&head->head);
}
