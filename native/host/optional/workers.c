// SPDX-License-Identifier: GPL-2.0-only
/*
 * kthread workers and workqueues, which deliberately differ from the kernel's
 * own. An experiment uses them if its file `objects` lists ream/workers.o. The
 * rest of workqueues is in native/host/kernel/custom.c.
 *
 * A worker that has works is a job of the program's pool: it runs on an idle CPU
 * and has no thread of its own. As in the kernel, its works run one after the
 * other, in the order in which they were queued.
 */
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include "kernel.h"

/* Value of worker->task while the worker is a job of the pool. */
static struct task_struct *const AS_A_JOB = (struct task_struct *)1;

static void run(void *job)
{
	struct kthread_worker *worker = job;

	for (;;) {
		struct kthread_work *work;

		raw_spin_lock(&worker->lock);
		work = list_first_entry_or_null(&worker->work_list,
						struct kthread_work, node);
		if (!work) {
			worker->task = NULL;
			raw_spin_unlock(&worker->lock);
			return;
		}
		list_del_init(&work->node);
		raw_spin_unlock(&worker->lock);
		work->func(work);
	}
}

#ifdef HAVE_KTHREAD_CREATE_WORKER
struct kthread_worker *kthread_create_worker(unsigned int flags,
					     const char name[], ...)
#else
struct kthread_worker *kthread_create_worker_on_node(unsigned int flags, int nid,
						     const char name[], ...)
#endif
{
	struct kthread_worker *worker = host_alloc(sizeof(*worker));

	HOST_STUB("custom");
	raw_spin_lock_init(&worker->lock);
	INIT_LIST_HEAD(&worker->work_list);
	return worker;
}

bool kthread_queue_work(struct kthread_worker *worker, struct kthread_work *work)
{
	bool is_new, is_idle;

	HOST_STUB("custom");
	raw_spin_lock(&worker->lock);
	is_new = list_empty(&work->node);
	is_idle = is_new && !worker->task;
	if (is_new)
		list_add_tail(&work->node, &worker->work_list);
	if (is_idle)
		worker->task = AS_A_JOB;
	raw_spin_unlock(&worker->lock);
	if (is_idle)
		host_submit(run, worker);
	return is_new;
}

/* The caller must ensure that no more work is queued meanwhile. */
void kthread_flush_worker(struct kthread_worker *worker)
{
	HOST_STUB("custom");
	if (host_cancel(worker))
		run(worker);
}

void kthread_destroy_worker(struct kthread_worker *worker)
{
	HOST_STUB("custom");
	kthread_flush_worker(worker);
	host_free(worker);
}

/* All works go to the pool, so a workqueue is only a pointer that is not NULL. */
#ifndef HAVE_ALLOC_WORKQUEUE
#undef alloc_workqueue
#define alloc_workqueue alloc_workqueue_noprof
#endif
struct workqueue_struct *alloc_workqueue(const char *format, unsigned int flags,
					 int max_active, ...)
{
	HOST_STUB("custom");
	return host_alloc(1);
}

bool cancel_work(struct work_struct *work)
{
	HOST_STUB("custom");
	if (!host_withdraw(work))
		return false;
	clear_bit_unlock(WORK_STRUCT_PENDING_BIT, work_data_bits(work));
	return true;
}

/* This waits for all works, and not only for @work. */
bool flush_work(struct work_struct *work)
{
	HOST_STUB("custom");
	host_drain();
	return true;
}

/* This flushes all workqueues, and not only @wq. */
void __flush_workqueue(struct workqueue_struct *wq)
{
	HOST_STUB("custom");
	host_drain();
}
