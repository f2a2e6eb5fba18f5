// SPDX-License-Identifier: GPL-2.0-only
/*
 * All tasks share one thread and run in the order in which they were woken. When
 * none can run, grace periods end. After that, time advances to the next timer.
 */
#include <linux/delay.h>
#include <linux/freezer.h>
#include <linux/sched/init.h>
#include <linux/sched/loadavg.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/sched/wake_q.h>
#include <linux/static_call.h>
#include <linux/swait.h>
#include <linux/wait.h>
#include "hosted.h"
#include "steps.h"

#define MOST_SPINS 131072
#define FEW_SPINS 4096
#define SPIN_TICKS (HZ / 4)

static LIST_HEAD(all_contexts);
static LIST_HEAD(run_queue);
static struct context first;	/* context of init_task, which boots and runs the program */
static struct context *ended;	/* a task whose stack is freed once another task runs */
static u64 idle_limit = U64_MAX;	/* time does not pass beyond it */
static bool is_picking;		/* the current task already sleeps; pick() looks for another */
static unsigned int nr_since_switch;	/* calls of cond_resched() */
static unsigned int nr_spinning;	/* tasks that busy-wait for time to pass */
static bool is_idle;		/* nothing can run, and no timer is due before the limit */

static struct context *current_context(void)
{
	return context_of(current);
}

static void enqueue(struct context *context)
{
	if (context->is_queued || context->has_ended)
		return;
	context->is_queued = true;
	list_add_tail(&context->queue, &run_queue);
}

void go_to_cpu(int cpu)
{
	struct task_struct *task = current;

	context_of(task)->cpu = cpu;
	host_set_per_cpu(__per_cpu_offset[cpu]);
	host_set_current(task);
	if (task->mm)
		load_address_space(task->mm, cpu);
}

static noinline void switch_to_context(struct context *from, struct context *to)
{
	nr_since_switch = 0;
	if (from == to)
		return;
	/* A kernel thread keeps the address space of the previous task loaded (lazy TLB). */
	if (to->task->mm)
		load_address_space(to->task->mm, to->cpu);
	if (from->cpu != to->cpu)
		host_set_per_cpu(__per_cpu_offset[to->cpu]);
	host_set_current(to->task);
	host_switch(&from->stack_pointer, to->stack_pointer);
	if (ended && ended != from) {
		host_free_stack(ended->stack_pointer);
		ended->stack_pointer = NULL;
		ended = NULL;
	}
}

static void wake_sleepers(void)
{
	struct context *context;

	list_for_each_entry(context, &all_contexts, all)
		if (context->wakes_at <= jiffies_64) {
			context->wakes_at = U64_MAX;
			WRITE_ONCE(context->task->__state, TASK_RUNNING);
			enqueue(context);
		}
}

static u64 next_event(void)
{
	struct context *context;
	u64 at = min(next_timer(), next_work());

	list_for_each_entry(context, &all_contexts, all)
		at = min(at, context->wakes_at);
	return at;
}

/* Advance time to the next event. Return: false if there is none before the limit. */
static bool pass_to_next_event(void)
{
	u64 at = next_event();

	if (at == U64_MAX || at > idle_limit)
		return false;
	jiffies_64 = max(jiffies_64, at);
	wake_sleepers();
	run_timers();
	queue_due_works();
	return true;
}

static struct context *pick(void)
{
	struct context *context;

	is_picking = true;
	while (list_empty(&run_queue)) {
		/* An interrupted step continues if the others wait for it. */
		if (end_grace_period() || end_interrupt() || pass_to_next_event())
			continue;
		/* Wake the first task, which wait_for_others() tells that all are idle. */
		is_idle = true;
		WRITE_ONCE(init_task.__state, TASK_RUNNING);
		enqueue(&first);
	}
	is_picking = false;
	context = list_first_entry(&run_queue, struct context, queue);
	list_del_init(&context->queue);
	context->is_queued = false;
	return context;
}

#ifdef CONFIG_DEBUG_ATOMIC_SLEEP
/* @offsets: The preempt_count() that the caller itself drops before it sleeps. */
void __might_resched(const char *file, int line, unsigned int offsets)
{
	const unsigned int count = preempt_count() & ~PREEMPT_NEED_RESCHED;

	HOST_STUB("custom");
	if (system_state == SYSTEM_RUNNING && count != offsets)
		wrong("%s:%d may sleep with a preemption count of %#x", file, line, count);
}

void __might_sleep(const char *file, int line)
{
	HOST_STUB("duplicated");
	__might_resched(file, line, 0);
}
#endif

void schedule(void)
{
	struct context *context = current_context();

	HOST_STUB("custom");
	if (preempt_count() & ~PREEMPT_NEED_RESCHED)
		wrong("%s sleeps with a preemption count of %#x", current->comm, preempt_count());
	if (READ_ONCE(current->__state) == TASK_RUNNING) {
		enqueue(context);
	} else if (signal_pending_state(READ_ONCE(current->__state), current)) {
		WRITE_ONCE(current->__state, TASK_RUNNING);
		enqueue(context);
	}
	switch_to_context(context, pick());
}

unsigned long nr_rescheds;

/* Detect a task that busy-waits with cond_resched(), and make it sleep for a while. */
static void note_spin(void)
{
	/* The task may be waiting for the interrupted step. */
	if (nr_since_switch >= FEW_SPINS && end_interrupt())
		schedule();
	if (++nr_since_switch < MOST_SPINS || system_state != SYSTEM_RUNNING)
		return;
	nr_spinning++;
	schedule_timeout_uninterruptible(SPIN_TICKS);
	nr_spinning--;
}

int __cond_resched(void)
{
	HOST_STUB("custom");
	nr_rescheds++;
	note_spin();
	may_interrupt();
	return 0;
}

#ifdef CONFIG_PREEMPTION
/* Called on unlocking if another task should run. */
asmlinkage __visible void preempt_schedule(void)
{
	HOST_STUB("custom");
	may_interrupt();
}

/* arch/x86/entry/thunk.S: the thunk preserves all registers of the caller. */
asm(".pushsection .text\n"
	".globl preempt_schedule_thunk\n"
	"preempt_schedule_thunk:\n"
	"push %rdi; push %rsi; push %rdx; push %rcx; push %rax\n"
	"push %r8; push %r9; push %r10; push %r11\n"
	"call preempt_schedule\n"
	"pop %r11; pop %r10; pop %r9; pop %r8\n"
	"pop %rax; pop %rcx; pop %rdx; pop %rsi; pop %rdi\n"
	"ret\n"
	".popsection");
#endif

#if defined(CONFIG_PREEMPT_DYNAMIC) && defined(CONFIG_HAVE_PREEMPT_DYNAMIC_CALL)
/* kernel/sched/core.c: the default is preempt=voluntary. */
DEFINE_STATIC_CALL(cond_resched, __cond_resched);
DEFINE_STATIC_CALL(might_resched, __cond_resched);
#endif

/*
 * kcompactd calls reclaim_throttle() until the counters are exact. It sleeps
 * neither there nor, if the tick preempts tasks, in cond_resched().
 */
void __wrap_reclaim_throttle(pg_data_t *node, enum vmscan_throttle_state reason)
{
	HOST_STUB("custom");
	note_spin();
	__real_reclaim_throttle(node, reason);
}

void schedule_preempt_disabled(void)
{
	HOST_STUB("custom");
	sched_preempt_enable_no_resched();
	schedule();
	preempt_disable();
}

void io_schedule(void)
{
	HOST_STUB("custom");
	schedule();
}

signed long schedule_timeout(signed long ticks)
{
	struct context *context = current_context();
	u64 until = jiffies_64 + ticks;

	HOST_STUB("custom");
	if (ticks == MAX_SCHEDULE_TIMEOUT) {
		schedule();
		return ticks;
	}
	if (READ_ONCE(current->__state) != TASK_RUNNING)
		context->wakes_at = until;
	schedule();
	context->wakes_at = U64_MAX;
	return until > jiffies_64 ? until - jiffies_64 : 0;
}

static signed long sleep_as(unsigned int state, signed long ticks)
{
	__set_current_state(state);
	return schedule_timeout(ticks);
}

signed long schedule_timeout_interruptible(signed long ticks)
{
	HOST_STUB("duplicated");
	return sleep_as(TASK_INTERRUPTIBLE, ticks);
}

signed long schedule_timeout_killable(signed long ticks)
{
	HOST_STUB("duplicated");
	return sleep_as(TASK_KILLABLE, ticks);
}

signed long schedule_timeout_uninterruptible(signed long ticks)
{
	HOST_STUB("duplicated");
	return sleep_as(TASK_UNINTERRUPTIBLE, ticks);
}

signed long schedule_timeout_idle(signed long ticks)
{
	HOST_STUB("duplicated");
	return sleep_as(TASK_IDLE, ticks);
}

long io_schedule_timeout(long ticks)
{
	HOST_STUB("duplicated");
	return schedule_timeout(ticks);
}

void msleep(unsigned int ms)
{
	HOST_STUB("duplicated");
	sleep_as(TASK_UNINTERRUPTIBLE, msecs_to_jiffies(ms) + 1);
}

void yield(void)
{
	HOST_STUB("custom");
	set_current_state(TASK_RUNNING);
	schedule();
}

/* --- waking ------------------------------------------------------------ */

int try_to_wake_up(struct task_struct *task, unsigned int state, int flags)
{
	struct context *context = context_of(task);

	HOST_STUB("custom");
	if (!(READ_ONCE(task->__state) & state))
		return 0;
	WRITE_ONCE(task->__state, TASK_RUNNING);
	context->wakes_at = U64_MAX;
	if (task != current || is_picking)
		enqueue(context);
	return 1;
}

int wake_up_process(struct task_struct *task)
{
	HOST_STUB("duplicated");
	return try_to_wake_up(task, TASK_NORMAL, 0);
}

int wake_up_state(struct task_struct *task, unsigned int state)
{
	HOST_STUB("duplicated");
	return try_to_wake_up(task, state, 0);
}

void wake_up_new_task(struct task_struct *task)
{
	HOST_STUB("custom");
	try_to_wake_up(task, TASK_NORMAL | TASK_NEW, 0);
}

int default_wake_function(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	HOST_STUB("duplicated");
	return try_to_wake_up(entry->private, mode, flags);
}

/* Wake the task immediately: it cannot run before the caller calls schedule(). */
void wake_q_add(struct wake_q_head *head, struct task_struct *task)
{
	HOST_STUB("custom");
	try_to_wake_up(task, TASK_NORMAL, 0);
}

void wake_q_add_safe(struct wake_q_head *head, struct task_struct *task)
{
	HOST_STUB("custom");
	try_to_wake_up(task, TASK_NORMAL, 0);
	put_task_struct(task);
}

/* --- tasks ------------------------------------------------------------- */

static void begin(void *arg)
{
	struct context *context = arg;

	context->result = context->run(context->arg);
	context->has_ended = true;
	ended = context;
	WRITE_ONCE(current->__state, TASK_DEAD);
	schedule();
}

struct context *new_task(int (*run)(void *arg), void *arg, const char *name, unsigned int flags)
{
	struct context *context = host_alloc(sizeof(*context));
	struct task_struct *task = host_alloc(sizeof(*task));

	memcpy(task, &init_task, sizeof(*task));
	context->task = task;
	task->stack = context;
	task->mm = NULL;
	task->active_mm = NULL;
	task->flags = flags;
	task->vfork_done = NULL;
	task->mempolicy = NULL;	/* do not inherit the policy of boot */
	refcount_set(&task->usage, 2);
	spin_lock_init(&task->alloc_lock);
	raw_spin_lock_init(&task->pi_lock);
	INIT_LIST_HEAD(&task->tasks);
	INIT_LIST_HEAD(&task->children);
	INIT_LIST_HEAD(&task->sibling);
	strscpy(task->comm, name, sizeof(task->comm));
	WRITE_ONCE(task->__state, TASK_UNINTERRUPTIBLE);
	context->run = run;
	context->arg = arg;
	context->cpu = context_of(current)->cpu;
	context->wakes_at = U64_MAX;
	context->stack_pointer = host_new_stack(begin, context);
	list_add_tail(&context->all, &all_contexts);
	return context;
}

/* The task_struct is not freed, since others may still point to it. */
void free_task_context(struct context *context)
{
	list_del_init(&context->all);
}

void start_scheduler(void)
{
	first.task = &init_task;
	first.wakes_at = U64_MAX;
	init_task.stack = &first;
	list_add_tail(&first.all, &all_contexts);
}

/* --- waiting of the first task ----------------------------------------- */

bool wait_for_others(unsigned long most_ticks)
{
	is_idle = false;
	idle_limit = jiffies_64 + most_ticks;
	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule();
	idle_limit = U64_MAX;
	return !is_idle;
}

void settle(void)
{
	/* Time passes only if tasks busy-wait. The loop ends when nothing can run. */
	while (wait_for_others(nr_spinning ? 2 * SPIN_TICKS : 0) || nr_spinning)
		;
}

void pass_time(unsigned long ticks)
{
	u64 until = jiffies_64 + ticks;

	while (jiffies_64 < until && wait_for_others(until - jiffies_64))
		;
	jiffies_64 = max(jiffies_64, until);
	settle();
}
