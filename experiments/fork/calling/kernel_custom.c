// SPDX-License-Identifier: GPL-2.0-only
/*
 * For a fork as a call: functions that are deliberately not the kernel's, and
 * how each differs. See native/host/kernel/kernel.h for the kinds.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/rcuwait.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include "internal.h"
#include "kernel.h"
#include "calling_kernel.h"

/* --- RCU ------------------------------------------------------------------- */

/*
 * A grace period ends where glue.c says: behind what is timed. In a kernel it
 * ends some milliseconds later, and a softirq or a kernel thread calls these.
 */
static struct rcu_head *first_waiting, **last_waiting = &first_waiting;
static unsigned long nr_waiting;

void call_rcu(struct rcu_head *head, rcu_callback_t function)
{
	HOST_STUB("custom");
	head->func = function;
	head->next = NULL;
	*last_waiting = head;
	last_waiting = &head->next;
	nr_waiting++;
}

unsigned long calling_nr_waiting(void)
{
	return nr_waiting;
}

void calling_reset_waiting(void)
{
	first_waiting = NULL;
	last_waiting = &first_waiting;
	nr_waiting = 0;
}

void calling_end_grace_period(void)
{
	while (first_waiting) {
		struct rcu_head *head = first_waiting;

		first_waiting = NULL;
		last_waiting = &first_waiting;
		nr_waiting = 0;
		while (head) {
			struct rcu_head *next = head->next;

			head->func(head);
			head = next;
		}
	}
}

/* kernel/exit.c: a task that waits for readers of a VMA finds none here. */
void finish_rcuwait(struct rcuwait *wait)
{
	HOST_STUB("duplicated");
	rcu_assign_pointer(wait->task, NULL);
	__set_current_state(TASK_RUNNING);
}

/* --- Files ------------------------------------------------------------------ */

/* fs/file_table.c: no file is closed here; its first reference remains. */
void fput(struct file *file)
{
	HOST_STUB("custom");
#ifdef HAVE_FILE_REF
	WARN_ON(file_ref_put(&file->f_ref));
#else
	WARN_ON(atomic_long_dec_and_test(&file->f_count));
#endif
}

/* fs/file.c: no process here has a program, so there is nothing to take a reference to. */
struct file *get_file_rcu(struct file __rcu **file)
{
	HOST_STUB("custom");
	WARN_ON(rcu_access_pointer(*file));
	return NULL;
}

/* --- Work ------------------------------------------------------------------- */

/* Of this CPU it is done at once: it frees what the CPU alone may look at. */
bool __wrap_queue_work_on(int cpu, struct workqueue_struct *queue, struct work_struct *work)
{
	HOST_STUB("custom");
	WARN_ON(cpu != raw_smp_processor_id());
	work->func(work);
	return true;
}

#ifdef CONFIG_ARCH_HAS_COPY_MC
/* Memory that a program has does not fail machine checks it could survive. */
unsigned long copy_mc_to_kernel(void *to, const void *from, unsigned int bytes)
{
	HOST_STUB("custom");
	memcpy(to, from, bytes);
	return 0;
}
#endif
