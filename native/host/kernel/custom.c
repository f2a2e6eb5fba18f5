// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that deliberately differ from the kernel's, and how each does.
 */
#include <linux/bug.h>
#include <linux/cpumask.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include "kernel.h"

static struct host_kernel kernel;

static const unsigned int *boot(const struct host_machine *machine)
{
	unsigned int cpu;

	kernel.ops = host_experiment_ops;
	BUILD_BUG_ON(CONFIG_NR_CPUS < HOST_MOST_CPUS);
	for (cpu = 0; cpu < machine->nr_cpus; cpu++) {
		cpumask_set_cpu(cpu, &__cpu_possible_mask);
		cpumask_set_cpu(cpu, &__cpu_present_mask);
		cpumask_set_cpu(cpu, &__cpu_online_mask);
	}
	nr_cpu_ids = machine->nr_cpus;
#ifdef HAVE_NUM_POSSIBLE_CPUS
	__num_possible_cpus = machine->nr_cpus;
#endif
	host_set_node_cpus(0, machine->nr_cpus);
	return host_boot_machine(machine);
}

/* The current task of each CPU is a kernel thread without an address space. */
static void init_cpu(unsigned int cpu, unsigned long per_cpu_offset)
{
	struct task_struct *task = host_alloc(sizeof(*task));

	task->flags = PF_KTHREAD;
	__per_cpu_offset[cpu] = per_cpu_offset;
	host_enter_cpu(cpu, per_cpu_offset, task);
}

/* Threads of the program's pool stand in for the kernel's workers. */
static void run_work(void *job)
{
	struct work_struct *work = job;

	/* As in process_one_work(), the work may be queued again from here on. */
	clear_bit_unlock(WORK_STRUCT_PENDING_BIT, work_data_bits(work));
	work->func(work);
}

/*
 * @wq and @cpu are ignored, because there is one pool with a thread per CPU.
 */
bool queue_work_on(int cpu, struct workqueue_struct *wq,
		   struct work_struct *work)
{
	HOST_STUB("custom");
	if (test_and_set_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(work)))
		return false;
	host_submit(run_work, work);
	return true;
}

/* @node is ignored likewise, since all CPUs of the pool belong to the same node. */
bool queue_work_node(int node, struct workqueue_struct *wq,
		     struct work_struct *work)
{
	HOST_STUB("custom");
	return queue_work_on(WORK_CPU_UNBOUND, wq, work);
}

bool cancel_work_sync(struct work_struct *work)
{
	HOST_STUB("custom");
	if (!host_cancel(work))
		return false;
	clear_bit_unlock(WORK_STRUCT_PENDING_BIT, work_data_bits(work));
	return true;
}

/*
 * Allocate memory of the program. It is always zeroed, flags are ignored, and
 * allocations never fail. Weak: an experiment may allocate from its node.
 */
void *__weak __kmalloc_noprof(size_t size, gfp_t flags)
{
	HOST_STUB("custom");
	return host_alloc(size);
}

void *__weak __kmalloc_cache_noprof(struct kmem_cache *cache, gfp_t flags, size_t size)
{
	HOST_STUB("custom");
	return host_alloc(size);
}

void __weak kfree(const void *object)
{
	HOST_STUB("custom");
	host_free((void *)object);
}

/*
 * Print the format without its arguments. Messages of level KERN_INFO and
 * KERN_DEBUG are not printed, nor are continuations, which consist mostly of
 * arguments.
 */
int _printk(const char *format, ...)
{
	int level = printk_get_level(format);

	HOST_STUB("custom");
	if (level != KERN_INFO[1] && level != KERN_DEBUG[1] && level != KERN_CONT[1])
		host_say(printk_skip_level(format));
	return 0;
}

void __warn_printk(const char *format, ...)
{
	HOST_STUB("custom");
	host_say(format);
}

static struct host_kernel kernel = {
	.boot = boot,
	.init_cpu = init_cpu,
	.facts = host_experiment_facts,
	.stubs = host_stubs,
	.bugs = HOST_BUGS,
	HOST_KERNEL_OF_MACHINE
};

/* The only entry point: the program walks this section in link order. */
static struct host_kernel *const entry __used __section("ream_kernels") = &kernel;
