/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: the world that a fork as a call is made in. */
#ifndef REAM_CALLING_KERNEL_H
#define REAM_CALLING_KERNEL_H

#include <linux/fs.h>
#include <linux/mm_types.h>
#include <linux/sched.h>
#include "calling.h"

/**
 * struct calling_world - the processes and files of a request
 * @request: What was asked for.
 * @parent: The process that forks; it runs.
 * @task: The child's; its mm is the one that copy_mm() makes.
 * @files: What VMAs map; @nr_files of them, and @mappings likewise.
 */
struct calling_world {
	struct calling_request request;
	struct mm_struct *parent;
	struct task_struct task;
	struct file *files;
	struct address_space *mappings;
	unsigned long nr_files;
};

extern struct calling_world calling_world;

/* kernel_fork.c: all that fork() does of memory, for this child of current. */
int calling_copy_mm(struct task_struct *task);
void calling_reset_ids(void);

/* kernel_slab.c: caches of a node that was just booted, as the boot makes them. */
void calling_boot_caches(void);

/* Free slabs without objects; then count those of each cache. */
void calling_shrink_caches(void);
void calling_count_objects(struct calling_result *result);

/* kernel_custom.c: what waits for the end of a grace period; and that this is it. */
unsigned long calling_nr_waiting(void);
void calling_end_grace_period(void);
void calling_reset_waiting(void);

/* kernel_space.c */
void calling_read_space(struct calling_space *space, int child);
void calling_read_files(struct calling_result *result);

#endif
