// SPDX-License-Identifier: GPL-2.0-only
/* Processes of a program. Each is a task that waits for its next step. */
#include <linux/memcontrol.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/resume_user_mode.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <asm/mmu_context.h>
#include "groups.h"
#include "hosted.h"
#include "steps.h"

#define FIRST_PID 100
#define LONGEST_STEP_S 120	/* virtual time; after that a step counts as waiting for another */
#define STACK_LIMIT_BYTES (8UL << 20)

static struct process processes[MOST_PROCESSES + 1];
static struct process *const helper = &processes[MOST_PROCESSES];

struct process *process_of(long number)
{
	if (number < 0 || number >= MOST_PROCESSES || !processes[number].context)
		return NULL;
	return &processes[number];
}

struct process *current_process(void)
{
	struct process *process = context_of(current)->arg;

	return process >= processes && process <= helper ? process : NULL;
}

struct mm_struct *mm_of(const struct process *process)
{
	return process->context ? process->context->task->mm : NULL;
}

/* --- life of a process ------------------------------------------------- */

/* As exit_mm() in kernel/exit.c. */
static void leave_memory(void)
{
	struct mm_struct *mm = current->mm;

	if (!mm)
		return;
	mmgrab(mm);
	current->active_mm = mm;
	current->mm = NULL;
	enter_kernel();
	mmput(mm);
	leave_kernel();
	unload_address_space(mm);
	current->active_mm = &init_mm;
	mmdrop(mm);
	if (test_thread_flag(TIF_MEMDIE))
		exit_oom_victim();
}

static void end_process(struct process *process)
{
	see_end(process);
	close_uffd(process);
	detach_device(&process->device);
	leave_memory();
	mpol_put_task_policy(current);
	charge_objects_no_more();
	list_del_rcu(&current->tasks);
	list_del_rcu(&current->thread_node);
	process->context = NULL;
}

static long step_leave(void)
{
	end_process(current_process());
	return 0;
}

static void die(struct process *process)
{
	process->is_killed = true;
	report("{\"line\": %u, \"killed\": %d}", line_under_way(), process->number);
	end_process(process);
	resume_user_mode_work(NULL);
}

static int live(void *arg)
{
	struct process *process = arg;

	while (process->context) {
		const long *argument = process->arguments;

		if (!process->step && fatal_signal_pending(current)) {
			die(process);
			break;
		}
		if (!process->step) {
			set_current_state(TASK_KILLABLE);
			schedule();
			continue;
		}
		process->result = process->step->run(argument[0], argument[1], argument[2],
						     argument[3], argument[4], argument[5],
						     argument[6], argument[7]);
		if (fatal_signal_pending(current))
			die(process);
		else
			resume_user_mode_work(NULL);
		process->step = NULL;
		wake_up_process(&init_task);
	}
	return 0;
}

/* Make a task for a process: a copy of init_task with signals of its own. */
static struct context *new_process_task(struct process *process)
{
	struct context *context = new_task(live, process, "process", 0);
	struct task_struct *task = context->task;
	struct signal_struct *signal = host_alloc(sizeof(*signal));

	memcpy(signal, init_task.signal, sizeof(*signal));
	signal->oom_mm = NULL;
	signal->rlim[RLIMIT_MEMLOCK] = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	INIT_LIST_HEAD(&signal->thread_head);
	task->signal = signal;
	task->group_leader = task;
	task->pid = FIRST_PID + process->number;
	task->tgid = task->pid;
	sigemptyset(&task->pending.signal);
	list_add_tail_rcu(&task->thread_node, &signal->thread_head);
	list_add_tail_rcu(&task->tasks, &init_task.tasks);
	snprintf(task->comm, sizeof(task->comm), "p%d", process->number);
	context->signal = signal;
	process->context = context;
	process->is_killed = false;
	process->step = NULL;
	process->uffd = -1;
	process->has_events = false;
	process->protects_present = false;
	return context;
}

static int begin_first(struct process *process)
{
	struct rlimit stack = { STACK_LIMIT_BYTES, RLIM_INFINITY };
	struct task_struct *task = new_process_task(process)->task;
	struct mm_struct *mm = mm_alloc();

	if (!mm)
		return -ENOMEM;
	arch_pick_mmap_layout(mm, &stack);
	mm->task_size = TASK_SIZE;
	rcu_assign_pointer(mm->owner, task);
	task->mm = mm;
	task->active_mm = mm;
	return 0;
}

void start_processes(void)
{
	int number;

	for (number = 0; number <= MOST_PROCESSES; number++) {
		processes[number].number = number;
		processes[number].pages = host_alloc(MOST_USER_PAGES *
						     sizeof(*processes[number].pages));
	}
	if (begin_first(&processes[0]))
		give_up("there is no memory for the first process");
	settle();
}

bool begin_again(void)
{
	bool has_begun = !begin_first(&processes[0]);

	settle();
	return has_begun;
}

/* --- steps of processes ------------------------------------------------ */

static void wait_for_step(struct process *process)
{
	while (process->step && process != interrupted_process() &&
	       ((process->has_events && (wait_for_others(0) || serve_event(process))) ||
		wait_for_others(LONGEST_STEP_S * HZ) || end_migrations()))
		;
}

void finish_interrupted(void)
{
	struct process *process = interrupted_process();

	if (end_interrupt())
		wait_for_step(process);
}

bool run_in_process(struct process *process, const struct step *step, const long *arguments)
{
	if (process == interrupted_process())
		finish_interrupted();
	if (process->step)
		return false;
	memcpy(process->arguments, arguments, sizeof(process->arguments));
	process->step = step;
	wake_up_process(process->context->task);
	wait_for_step(process);
	if (process->step && may_fault_for_ever()) {
		do_send_sig_info(SIGKILL, SEND_SIG_PRIV, process->context->task, PIDTYPE_TGID);
		wait_for_step(process);
	}
	return !process->step;
}

struct process *begin_helper(void)
{
	end_helper();
	return begin_first(helper) ? NULL : helper;
}

void end_helper(void)
{
	static const struct step last = { .name = "exit", .run = (void *)step_leave };
	const long arguments[MOST_ARGUMENTS] = { };

	if (helper->context)
		run_in_process(helper, &last, arguments);
}

long run_in_helper(const struct step *step, long a, long b)
{
	const long arguments[MOST_ARGUMENTS] = { a, b };
	long result;

	if (!begin_helper())
		return -ENOMEM;
	if (!run_in_process(helper, step, arguments))
		give_up("%s sleeps for ever", step->name);
	result = helper->result;
	end_helper();
	return result;
}

/*
 * A child inherits its parent's ksm_zero_pages. The count is right only if fork
 * copies all VMAs.
 */
static bool has_forked_in_part;

bool may_ksm_zero_pages_vary(void)
{
	return has_forked_in_part;
}

static bool forks_all(struct mm_struct *mm)
{
	struct vm_area_struct *vma;

	VMA_ITERATOR(vmi, mm, 0);

	for_each_vma(vmi, vma)
		if (vma->vm_flags & (VM_DONTCOPY | VM_WIPEONFORK))
			return false;
	return true;
}

long step_fork(long parent, long number)
{
	struct process *child;
	struct context *context;
	int error;

	if (number < 0 || number >= MOST_PROCESSES || processes[number].context)
		return -EEXIST;
	child = &processes[number];
	context = new_process_task(child);
	context->task->cgroups = current->cgroups;
	charge_objects_of(context->task);
	context->task->mempolicy = mpol_dup(current->mempolicy);
	context->task->il_prev = current->il_prev;
	error = PTR_ERR_OR_ZERO(context->task->mempolicy);
	if (!error)
		error = TIMED(process_copy_mm(context->task));
	if (current->mm->ksm_zero_pages.counter && (error || !forks_all(current->mm)))
		has_forked_in_part = true;
	if (error) {
		if (!IS_ERR(context->task->mempolicy))
			mpol_put(context->task->mempolicy);
		child->context = NULL;
		list_del_rcu(&context->task->tasks);
		free_task_context(context);
		return error;
	}
	see_fork(current_process(), child);
	return 0;
}

long step_exit(long number)
{
	return step_leave();
}

long step_join(long number, long group)
{
	struct css_set *set = set_of_group(group + 1);	/* group 0 is the root */

	if (!set)
		return -ENOENT;
	current->cgroups = set;
	charge_objects_no_more();
	charge_objects_of(current);
	return 0;
}

long step_group(long group, long nr_pages)
{
	int number = make_group();

	if (number < 0)
		return number;
	if (nr_pages)
		set_group_limit(number, nr_pages);
	return number == group + 1 ? 0 : -EINVAL;
}

long step_run_on(long number, long cpu)
{
	if (cpu < 0 || cpu >= computer.nr_cpus)
		return -EINVAL;
	go_to_cpu(cpu);
	return 0;
}

void end_processes(void)
{
	static const struct step last = { .name = "exit", .run = (void *)step_exit };
	int number;

	release_pins();
	for (number = MOST_PROCESSES - 1; number >= 0; number--) {
		const long arguments[MOST_ARGUMENTS] = { number };

		if (process_of(number) && !run_in_process(process_of(number), &last, arguments))
			wrong("process %d still waits for something when all has ended", number);
	}
}

/* The OOM killer and memory failures send signals through this function. */
int do_send_sig_info(int number, struct kernel_siginfo *info, struct task_struct *task,
		     enum pid_type type)
{
	HOST_STUB("custom");
	sigaddset(&task->pending.signal, number);
	set_tsk_thread_flag(task, TIF_SIGPENDING);
	wake_up_state(task, TASK_INTERRUPTIBLE | TASK_WAKEKILL);
	return 0;
}
