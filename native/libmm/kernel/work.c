// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workqueues. Works run in the order in which they were queued. If a worker
 * sleeps, another one takes the next work. Before it runs a work, a worker moves
 * to the CPU that the work was queued on.
 */
#include <linux/kthread.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include "hosted.h"

#define MOST_WORKERS 16

struct workqueue_struct *system_wq, *system_unbound_wq, *system_highpri_wq, *system_long_wq;
struct workqueue_struct *system_freezable_wq, *system_power_efficient_wq;
struct workqueue_struct *system_dfl_wq, *system_percpu_wq;

/* A workqueue has no state of its own, because all works are on one list. */
struct workqueue_struct {
	const char *name;
};

static LIST_HEAD(works);
static LIST_HEAD(delayed_works);	/* by struct delayed_work.work.entry */

static struct worker {
	struct context *context;
	struct work_struct *work;
} workers[MOST_WORKERS];
static unsigned int nr_workers;

static void set_pending(struct work_struct *work)
{
	set_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(work));
}

static bool is_pending(struct work_struct *work)
{
	return test_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(work));
}

static int run_works(void *arg);

static void wake_worker(void)
{
	unsigned int i;

	for (i = 0; i < nr_workers; i++)
		if (!workers[i].work) {
			wake_up_process(workers[i].context->task);
			return;
		}
	if (nr_workers == MOST_WORKERS)
		return;
	workers[nr_workers].context = new_task(run_works, &workers[nr_workers], "kworker",
					       PF_KTHREAD | PF_WQ_WORKER);
	wake_up_process(workers[nr_workers++].context->task);
}

static void enqueue_work(struct work_struct *work, int cpu)
{
	/* Store the CPU in the bits that otherwise hold a pool ID. */
	work->data.counter = (work->data.counter & WORK_STRUCT_PENDING) |
			     (unsigned long)(cpu + 1) << WORK_OFFQ_FLAG_SHIFT;
	list_add_tail(&work->entry, &works);
	if (nr_workers)
		wake_worker();
}

static int cpu_of_work(const struct work_struct *work)
{
	int cpu = (int)(work->data.counter >> WORK_OFFQ_FLAG_SHIFT) - 1;

	return cpu >= 0 && cpu < nr_cpu_ids ? cpu : 0;
}

static int run_works(void *arg)
{
	struct worker *worker = arg;

	for (;;) {
		struct work_struct *work = list_first_entry_or_null(&works, struct work_struct,
								    entry);

		if (!work) {
			set_current_state(TASK_IDLE);
			schedule();
			continue;
		}
		list_del_init(&work->entry);
		worker->work = work;
		if (!list_empty(&works))
			wake_worker();
		go_to_cpu(cpu_of_work(work));
		clear_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(work));
		work->func(work);
		worker->work = NULL;
	}
	return 0;
}

void start_workers(void)
{
	if (!list_empty(&works))
		wake_worker();
	else
		workers[nr_workers++].context = new_task(run_works, &workers[0], "kworker",
							 PF_KTHREAD | PF_WQ_WORKER);
}

bool queue_work_on(int cpu, struct workqueue_struct *queue, struct work_struct *work)
{
	HOST_STUB("custom");
	if (is_pending(work))
		return false;
	set_pending(work);
	enqueue_work(work, cpu == WORK_CPU_UNBOUND ? context_of(current)->cpu : cpu);
	return true;
}

bool queue_work_node(int node, struct workqueue_struct *queue, struct work_struct *work)
{
	HOST_STUB("custom");
	return queue_work_on(WORK_CPU_UNBOUND, queue, work);
}

static void rcu_work_is_due(struct rcu_head *head)
{
	struct rcu_work *its = container_of(head, struct rcu_work, rcu);

	enqueue_work(&its->work, 0);
}

bool queue_rcu_work(struct workqueue_struct *queue, struct rcu_work *its)
{
	HOST_STUB("custom");
	if (is_pending(&its->work))
		return false;
	set_pending(&its->work);
	call_rcu(&its->rcu, rcu_work_is_due);
	return true;
}

/* --- delayed works ----------------------------------------------------- */

bool queue_delayed_work_on(int cpu, struct workqueue_struct *queue, struct delayed_work *delayed,
			   unsigned long ticks)
{
	HOST_STUB("custom");
	if (!ticks)
		return queue_work_on(cpu, queue, &delayed->work);
	if (is_pending(&delayed->work))
		return false;
	set_pending(&delayed->work);
	delayed->cpu = cpu == WORK_CPU_UNBOUND ? context_of(current)->cpu : cpu;
	delayed->timer.expires = jiffies + ticks;
	list_add_tail(&delayed->work.entry, &delayed_works);
	return true;
}

static bool is_delayed(struct work_struct *work)
{
	struct work_struct *one;

	list_for_each_entry(one, &delayed_works, entry)
		if (one == work)
			return true;
	return false;
}

u64 next_work(void)
{
	struct delayed_work *one;
	long ticks = LONG_MAX;

	list_for_each_entry(one, &delayed_works, work.entry)
		ticks = min(ticks, max(0L, (long)(one->timer.expires - jiffies)));
	return ticks == LONG_MAX ? U64_MAX : jiffies_64 + ticks;
}

void queue_due_works(void)
{
	struct delayed_work *one, *next;

	list_for_each_entry_safe(one, next, &delayed_works, work.entry) {
		if (time_before(jiffies, one->timer.expires))
			continue;
		list_del_init(&one->work.entry);
		enqueue_work(&one->work, one->cpu);
	}
}

static bool take_back(struct work_struct *work)
{
	if (!is_pending(work) || list_empty(&work->entry))
		return false;
	list_del_init(&work->entry);
	clear_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(work));
	return true;
}

bool mod_delayed_work_on(int cpu, struct workqueue_struct *queue, struct delayed_work *delayed,
			 unsigned long ticks)
{
	bool was_pending = take_back(&delayed->work);

	HOST_STUB("custom");
	queue_delayed_work_on(cpu, queue, delayed, ticks);
	return was_pending;
}

/* --- flushing and cancelling ------------------------------------------- */

static bool runs(const struct work_struct *work)
{
	unsigned int i;

	for (i = 0; i < nr_workers; i++)
		if (workers[i].work && workers[i].context->task != current &&
		    (!work || workers[i].work == work))
			return true;
	return false;
}

static bool is_queued(struct work_struct *work)
{
	return is_pending(work) && !is_delayed(work);
}

/* Let other tasks run. Time passes only if all of them sleep. */
static void wait_while(bool (*holds)(struct work_struct *work), struct work_struct *work)
{
	while (holds(work))
		if (list_empty(&works))
			schedule_timeout_uninterruptible(1);
		else
			schedule();
}

static bool is_queued_or_runs(struct work_struct *work)
{
	return is_queued(work) || runs(work);
}

static bool any_is_queued_or_runs(struct work_struct *work)
{
	return !list_empty(&works) || runs(NULL);
}

static bool runs_now(struct work_struct *work)
{
	return runs(work);
}

bool flush_work(struct work_struct *work)
{
	bool waits = is_queued_or_runs(work);

	HOST_STUB("custom");
	wait_while(is_queued_or_runs, work);
	return waits;
}

void __flush_workqueue(struct workqueue_struct *queue)
{
	HOST_STUB("custom");
	wait_while(any_is_queued_or_runs, NULL);
}

void drain_workqueue(struct workqueue_struct *queue)
{
	HOST_STUB("custom");
	wait_while(any_is_queued_or_runs, NULL);
}

bool flush_delayed_work(struct delayed_work *delayed)
{
	HOST_STUB("custom");
	if (is_delayed(&delayed->work)) {
		list_del_init(&delayed->work.entry);
		enqueue_work(&delayed->work, delayed->cpu);
	}
	return flush_work(&delayed->work);
}

bool flush_rcu_work(struct rcu_work *its)
{
	HOST_STUB("custom");
	rcu_barrier();
	return flush_work(&its->work);
}

bool cancel_work(struct work_struct *work)
{
	HOST_STUB("custom");
	return take_back(work);
}

bool cancel_work_sync(struct work_struct *work)
{
	bool was_pending = take_back(work);

	HOST_STUB("custom");
	wait_while(runs_now, work);
	return was_pending;
}

bool cancel_delayed_work(struct delayed_work *delayed)
{
	HOST_STUB("custom");
	return take_back(&delayed->work);
}

bool cancel_delayed_work_sync(struct delayed_work *delayed)
{
	HOST_STUB("custom");
	return cancel_work_sync(&delayed->work);
}

int schedule_on_each_cpu(work_func_t function)
{
	int here = context_of(current)->cpu, cpu;
	struct work_struct work;

	HOST_STUB("custom");
	INIT_WORK_ONSTACK(&work, function);
	for_each_online_cpu(cpu) {
		go_to_cpu(cpu);
		function(&work);
	}
	go_to_cpu(here);
	return 0;
}

unsigned int work_busy(struct work_struct *work)
{
	HOST_STUB("custom");
	return (is_pending(work) ? WORK_BUSY_PENDING : 0) | (runs(work) ? WORK_BUSY_RUNNING : 0);
}

struct work_struct *current_work(void)
{
	unsigned int i;

	HOST_STUB("custom");
	for (i = 0; i < nr_workers; i++)
		if (workers[i].context->task == current)
			return workers[i].work;
	return NULL;
}

/* --- queues ------------------------------------------------------------ */

static struct workqueue_struct the_queue = { .name = "all" };

#undef alloc_workqueue
#ifndef HAVE_ALLOC_WORKQUEUE
#define alloc_workqueue alloc_workqueue_noprof
#endif
struct workqueue_struct *alloc_workqueue(const char *format, unsigned int flags, int most, ...)
{
	HOST_STUB("custom");
	return &the_queue;
}

void destroy_workqueue(struct workqueue_struct *queue)
{
	HOST_STUB("custom");
	wait_while(any_is_queued_or_runs, NULL);
}
