// SPDX-License-Identifier: GPL-2.0-only
/*
 * A step that is interrupted: it stops where the kernel may let other tasks run,
 * and goes on behind the next step. Two steps meet as two CPUs have them meet,
 * at a place that the program's text names.
 */
#include <linux/sched.h>
#include "hosted.h"
#include "steps.h"

static unsigned long next_stops, stops;	/* so many places from now on; 0: at none */
static bool are_asked;	/* CPUs to preempt their tasks */
static struct process *interrupted;

long step_interrupt(long nr)
{
	if (nr <= 0)
		return -EINVAL;
	next_stops = nr;
	return 0;
}

/* Where tasks are preempted, locks look for it when they are released. */
static void ask_all_cpus(bool asks)
{
	const int here = smp_processor_id();
	int cpu;

	if (!IS_ENABLED(CONFIG_PREEMPTION) || asks == are_asked)
		return;
	are_asked = asks;
	for_each_online_cpu(cpu) {
		host_set_per_cpu(__per_cpu_offset[cpu]);
		if (asks)
			set_preempt_need_resched();
		else
			clear_preempt_need_resched();
	}
	host_set_per_cpu(__per_cpu_offset[here]);
}

bool begin_interrupting(void)
{
	stops = next_stops;
	next_stops = 0;
	ask_all_cpus(stops);
	return stops;
}

void end_interrupting(void)
{
	stops = 0;
	ask_all_cpus(false);
}

/* No lock is held that forbids it, and the task does not wait for something else. */
static bool may_stop(void)
{
#ifdef CONFIG_PREEMPT_RCU
	if (current->rcu_read_lock_nesting)	/* grace periods end without a look at it */
		return false;
#endif
	return is_in_kernel() && current_process() && !(preempt_count() & ~PREEMPT_NEED_RESCHED) &&
	       READ_ONCE(current->__state) == TASK_RUNNING;
}

void may_interrupt(void)
{
	struct process *process = current_process();

	if (!stops || !may_stop() || --stops)
		return;
	interrupted = process;
	wake_up_process(&init_task);
	while (interrupted == process) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	may_fail(true);	/* which the other step has left */
}

struct process *interrupted_process(void)
{
	return interrupted;
}

bool end_interrupt(void)
{
	struct process *process = interrupted;

	if (!process)
		return false;
	interrupted = NULL;
	wake_up_process(process->context->task);
	return true;
}
