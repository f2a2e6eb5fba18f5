/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside a hosted mm: tasks, their time, the MMU, and what checks ask of them.
 *
 * All tasks are contexts of one thread. A task runs until it sleeps or ends,
 * so what happens does not depend on how fast anything is.
 */
#ifndef REAM_HOSTED_H
#define REAM_HOSTED_H

#include <linux/init.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/mm_types.h>
#include <linux/mmzone.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include "kernel.h"
#include "libmm.h"

/* What newer trees call something that an older one has, too. */
#define NEWER_NAME(newer, name) asm(".globl " #newer "\n.set " #newer ", " #name)

#define MOST_CPUS 4
#define MOST_NODES 4

/* --- computer.c: what there is ----------------------------------------- */

/**
 * struct computer - what a program's first lines declare
 * @nr_cpus: CPUs.
 * @nr_nodes: Nodes that have memory.
 * @node_frames: Frames of each.
 * @nr_frames: Of all together.
 * @nr_dma32: The first ones, which are ZONE_DMA32; 0: there is no such zone.
 */
struct computer {
	unsigned int nr_cpus;
	unsigned int nr_nodes;
	unsigned long node_frames[MOST_NODES];
	unsigned long nr_frames;
	unsigned long nr_dma32;
};

extern struct computer computer;

void boot_computer(void);

static inline bool is_ram(unsigned long pfn)
{
	return pfn - LIBMM_FIRST_PFN < computer.nr_frames;
}

/* --- sched.c: tasks ---------------------------------------------------- */

/**
 * struct context - a task, and where it goes on
 * @task: The kernel's own; its stack member points back here.
 * @signal: Of a process, which is not shared.
 * @stack_pointer: Where it goes on; only while another task runs.
 * @run: What it begins with, called with @arg.
 * @wakes_at: In jiffies, if nothing wakes it before; U64_MAX: never.
 * @cpu: Which it runs on.
 * @is_queued: It is in the queue of tasks that may run.
 * @has_ended: It never runs again.
 * @should_stop: kthread_stop() waits for its end.
 * @result: What @run returned.
 * @all: In the list of all tasks.
 * @queue: In the queue.
 */
struct context {
	struct task_struct *task;
	struct signal_struct *signal;
	void *stack_pointer;
	int (*run)(void *arg);
	void *arg;
	u64 wakes_at;
	int cpu;
	bool is_queued;
	bool has_ended;
	bool should_stop;
	int result;
	struct list_head all;
	struct list_head queue;
};

static inline struct context *context_of(const struct task_struct *task)
{
	return task->stack;
}

void start_scheduler(void);
struct context *new_task(int (*run)(void *arg), void *arg, const char *name, unsigned int flags);
void free_task_context(struct context *context);

/* Let all tasks run that can, and what is due without time passing. */
void settle(void);

/* Let time pass while the caller, which is the first task, does nothing. */
void pass_time(unsigned long ticks);

/*
 * Sleep until another task wakes us, or nothing is left that could; whether it
 * was woken. For the task that gives others something to do.
 */
bool wait_for_others(unsigned long most_ticks);

/* The linker has calls of the kernel's function, the first one, come to the second. */
void __real_reclaim_throttle(pg_data_t *node, enum vmscan_throttle_state reason);
void __wrap_reclaim_throttle(pg_data_t *node, enum vmscan_throttle_state reason);

/* So often a task has offered to let others run. */
extern unsigned long nr_rescheds;
extern unsigned long nr_flushed_pages;

/* Run what follows on another CPU. */
void go_to_cpu(int cpu);

/* --- time.c, work.c, rcu.c: what is due -------------------------------- */

u64 next_timer(void);
void run_timers(void);
u64 next_work(void);
void queue_due_works(void);
bool end_grace_period(void);
void start_workers(void);

/* --- mmu.c, access.c --------------------------------------------------- */

/**
 * struct translation - what maps an address
 * @entry: As if it were of one page; 0 if there is none.
 * @at: The entry in the table, of any level; NULL if there is no table.
 * @is_huge: That table is above those of single pages.
 */
struct translation {
	unsigned long entry;
	unsigned long *at;
	bool is_huge;
};

struct translation translate(struct mm_struct *mm, unsigned long address);
void check_tlb(void);

/* A device that uses an address space from now on, and no longer. */
long attach_device(struct mmu_notifier *device, struct mm_struct *mm);
void detach_device(struct mmu_notifier *device);

/* The CPU runs a process with this address space from now on; and: no CPU does any more. */
void load_address_space(struct mm_struct *mm, int cpu);
void unload_address_space(struct mm_struct *mm);

/*
 * As an instruction of the current process would: load or store a word through
 * the TLB, the tables, or a fault. Returns 0, or the signal that it gets.
 */
int access_word(unsigned long address, bool writes, unsigned long *word);

int take_signal(void);

/* --- process.c --------------------------------------------------------- */

int process_copy_mm(struct task_struct *child);

/* --- program.c: the step that is timed ---------------------------------- */

/* Around each call of a function of the kernel's that is part of a step. */
void enter_kernel(void);
void leave_kernel(void);

/* failing.c: which step allocations of the kernel's functions may fail in. */
void begin_failing(void);
/* Large blocks are not to be had in the rest of this step. */
bool fails_for_ever(void);
void may_fail(bool may);
bool is_in_kernel(void);

#define TIMED(call_) ({				\
	enter_kernel();				\
	typeof(call_) result_ = (call_);	\
	leave_kernel();				\
	result_;				\
})

/* --- report.c ---------------------------------------------------------- */

/* One line of the report. */
__printf(1, 2) void report(const char *format, ...);

/* Something is wrong; the step under way is named with it. */
__printf(1, 2) void wrong(const char *format, ...);

/* init/main.c: what __setup() and early_param() declare; libmm.lds */
extern const struct obs_kernel_param __setup_start[], __setup_end[];

extern unsigned long nr_alarms;
extern bool goes_on_after_alarms;

/* The run cannot go on. */
__printf(1, 2) __noreturn void give_up(const char *format, ...);

#endif
