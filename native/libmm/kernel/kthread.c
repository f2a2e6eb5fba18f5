// SPDX-License-Identifier: GPL-2.0-only
/* Kernel threads: tasks that start asleep, and end on kthread_stop(). */
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include "hosted.h"

DEFINE_STATIC_KEY_FALSE(freezer_active);

struct task_struct *kthread_create_on_node(int (*run)(void *data), void *data, int node,
					   const char format[], ...)
{
	char name[TASK_COMM_LEN];
	va_list arguments;

	HOST_STUB("custom");
	va_start(arguments, format);
	vsnprintf(name, sizeof(name), format, arguments);
	va_end(arguments);
	return new_task(run, data, name, PF_KTHREAD)->task;
}

bool kthread_should_stop(void)
{
	HOST_STUB("duplicated");
	return context_of(current)->should_stop;
}

bool kthread_should_stop_or_park(void)
{
	HOST_STUB("duplicated");
	return kthread_should_stop();
}

bool kthread_freezable_should_stop(bool *was_frozen)
{
	HOST_STUB("custom");
	if (was_frozen)
		*was_frozen = false;
	return kthread_should_stop();
}

int kthread_stop(struct task_struct *task)
{
	struct context *context = context_of(task);

	HOST_STUB("custom");
	context->should_stop = true;
	wake_up_state(task, TASK_NORMAL | TASK_NEW);
	while (!context->has_ended)
		schedule_timeout_uninterruptible(1);
	free_task_context(context);
	return context->result;
}

void kthread_bind(struct task_struct *task, unsigned int cpu)
{
	HOST_STUB("custom");
	context_of(task)->cpu = cpu;
}

void kthread_bind_mask(struct task_struct *task, const struct cpumask *mask)
{
	HOST_STUB("custom");
	context_of(task)->cpu = cpumask_first(mask);
}

void kthread_use_mm(struct mm_struct *mm)
{
	HOST_STUB("custom");
	mmgrab(mm);
	current->mm = mm;
	current->active_mm = mm;
	load_address_space(mm, context_of(current)->cpu);
}

void kthread_unuse_mm(struct mm_struct *mm)
{
	HOST_STUB("custom");
	current->mm = NULL;
	mmdrop(mm);
}

void *kthread_func(struct task_struct *task)
{
	HOST_STUB("duplicated");
	return context_of(task)->run;
}

