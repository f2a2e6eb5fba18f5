// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupted steps. A step stops at a place where the kernel may schedule, and
 * continues after the next step. So two steps race as on two CPUs, at a point
 * that the program's text chooses.
 */
#include <linux/sched.h>
#include "hosted.h"
#include "steps.h"

static unsigned long next_stops, stops;	/* stop at the Nth place from now; 0 for none */
static bool are_asked;	/* need_resched is set on all CPUs */
static struct process *interrupted;

long step_interrupt(long nr)
{
	if (nr <= 0)
		return -EINVAL;
	next_stops = nr;
	return 0;
}

/* With CONFIG_PREEMPTION, unlocking calls preempt_schedule() if need_resched is set. */
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

/* The task may stop only outside atomic sections, and if it is not about to sleep. */
static bool may_stop(void)
{
#ifdef CONFIG_PREEMPT_RCU
	if (current->rcu_read_lock_nesting)	/* rcu.c ends grace periods regardless of it */
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
	may_fail(true);	/* the other step has cleared it */
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
