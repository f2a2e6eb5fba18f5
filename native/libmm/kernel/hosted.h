/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside a hosted mm: tasks, their time, the MMU, and what the checks use.
 *
 * All tasks are contexts of one thread. A task runs until it sleeps or exits,
 * so a run does not depend on timing.
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

/* Alias of a function that newer trees have renamed. */
#define NEWER_NAME(newer, name) asm(".globl " #newer "\n.set " #newer ", " #name)

#define MOST_CPUS 4
#define MOST_NODES 4

/* --- computer.c: the machine ------------------------------------------- */

/**
 * struct computer - the machine, as the first lines of a program declare it
 * @nr_cpus: Number of CPUs.
 * @nr_nodes: Number of nodes that have memory.
 * @node_frames: Number of frames of each node.
 * @nr_frames: Number of frames of all nodes.
 * @nr_dma32: Number of frames in ZONE_DMA32, which are the first; 0 for no such zone.
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
 * struct context - a task and its execution state
 * @task: The kernel's task_struct. Its stack member points back to the context.
 * @signal: The signal_struct of a process. It is not shared.
 * @stack_pointer: Saved stack pointer. Valid only while another task runs.
 * @run: Function that the task starts with, called with @arg.
 * @wakes_at: Time of its timeout, in jiffies. U64_MAX means no timeout.
 * @cpu: CPU that it runs on.
 * @is_queued: It is on the run queue.
 * @has_ended: It never runs again.
 * @should_stop: kthread_stop() waits for its end.
 * @result: Return value of @run.
 * @all: Entry in the list of all tasks.
 * @queue: Entry in the run queue.
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

/* Run all tasks, timers and works that are due, without letting time pass. */
void settle(void);

/* Let time pass while the caller sleeps. The caller must be the first task. */
void pass_time(unsigned long ticks);

/*
 * Sleep until another task wakes the caller, or until nothing is left that could.
 * Only the first task may call it. Return: whether it was woken.
 */
bool wait_for_others(unsigned long most_ticks);

/* The linker redirects calls of reclaim_throttle() to the wrapper (ld --wrap). */
void __real_reclaim_throttle(pg_data_t *node, enum vmscan_throttle_state reason);
void __wrap_reclaim_throttle(pg_data_t *node, enum vmscan_throttle_state reason);

/* Number of calls of cond_resched(), and of pages flushed from TLBs. */
extern unsigned long nr_rescheds;
extern unsigned long nr_flushed_pages;

/* Move the current task to another CPU. */
void go_to_cpu(int cpu);

/* --- time.c, work.c, rcu.c: pending timers, works and grace periods ---- */

u64 next_timer(void);
void run_timers(void);
u64 next_work(void);
void queue_due_works(void);
bool end_grace_period(void);
void start_workers(void);

/* --- mmu.c, access.c --------------------------------------------------- */

/**
 * struct translation - the page table entry that maps an address
 * @entry: The entry as if it mapped a single page. 0 if nothing is mapped.
 * @at: Address of the entry, at any level. NULL if there is no table.
 * @is_huge: The entry is above PTE level.
 */
struct translation {
	unsigned long entry;
	unsigned long *at;
	bool is_huge;
};

struct translation translate(struct mm_struct *mm, unsigned long address);
void check_tlb(void);

/* Let a device with a TLB of its own use an address space, and stop that. */
long attach_device(struct mmu_notifier *device, struct mm_struct *mm);
void detach_device(struct mmu_notifier *device);

/* Switch a CPU to an address space, and take an address space from all CPUs. */
void load_address_space(struct mm_struct *mm, int cpu);
void unload_address_space(struct mm_struct *mm);

/*
 * Load or store a word as an instruction of the current process would: through
 * the TLB, a page table walk, or a fault. Return: 0, or the signal it raised.
 */
int access_word(unsigned long address, bool writes, unsigned long *word);

int take_signal(void);

/* --- process.c --------------------------------------------------------- */

int process_copy_mm(struct task_struct *child);

/* --- program.c: the step that is timed ---------------------------------- */

/* These bracket each call into the kernel that is part of a step. */
void enter_kernel(void);
void leave_kernel(void);

/* failing.c: arm the failures of allocations that were requested for this step. */
void begin_failing(void);
/* Whether large allocations fail for the rest of this step. */
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

/* Write one line of the report. */
__printf(1, 2) void report(const char *format, ...);

/* Raise an alarm: a check has failed. The report names the current step. */
__printf(1, 2) void wrong(const char *format, ...);

/* init/main.c: parameters of __setup() and early_param(), placed by libmm.lds */
extern const struct obs_kernel_param __setup_start[], __setup_end[];

extern unsigned long nr_alarms;
extern bool goes_on_after_alarms;

/* End the run, because it cannot continue. */
__printf(1, 2) __noreturn void give_up(const char *format, ...);

#endif
