// SPDX-License-Identifier: GPL-2.0-only
/*
 * order9: measure the cost of huge pages on a node whose memory is in use.
 *
 *   insmod order9.ko node=1 cpu=0 count=64
 *
 * only loads the module. Its parameters drive it:
 *
 *   node, order, count, cpu   which pages, how many, from which CPU
 *   ballast   1: before the clock starts, allocate all free blocks, so that
 *             each huge page needs compaction; they do not count as results
 *   run       write 1 to allocate on the CPU until "count" pages are held or
 *             no more can be allocated; write 0 to free all
 *   result    of the last run, "name=value ...":
 *             allocated      pages that are held, without ballast
 *             elapsed_ns     of the loop
 *             page_copy_ns   of one small page, by the kernel's own copy
 *             nr_failed      allocations that gave nothing; 256 in a row end it
 *             longest_ns     of one allocation
 *             ballast        blocks that were free, and were taken before
 *             user_ns, system_ns, idle_ns   of the CPU, during the loop
 *             machine_user_ns, machine_system_ns, machine_idle_ns,
 *             machine_steal_ns   of all CPUs, during the loop
 *
 * Pages are not zeroed, and nothing uses them. When the clock has stopped they
 * are overwritten, so that any other user of such a page sees the corruption.
 *
 * The task that writes to "run" does the allocations, as a task that faults
 * would. Compaction captures no pages for kernel threads; see task_capc() in
 * mm/page_alloc.c.
 *
 * The cost of a copy is measured when the module is loaded. During a run it
 * would be included in what the run counts.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/kernel_stat.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sysfs.h>
#include <linux/tick.h>

/* Number of pages to copy, and of targets: more than the caches near a CPU hold. */
#define COPIED_PAGES 1024

#define PATTERN 0xa5

/*
 * An allocation that gave nothing is asked for again: compaction that failed
 * is put off, for up to 1 << COMPACT_MAX_DEFER_SHIFT requests. Some more, and
 * nothing is to be had any more.
 */
#define MOST_FAILURES 256

/* Of user memory, as a huge page is; not zeroed, and from no other node. */
#define GFP_WANTED (GFP_HIGHUSER_MOVABLE | __GFP_THISNODE | __GFP_NOWARN)

/* The parameters; kernel_param_lock() is held wherever they are looked at. */
static int node;
static unsigned int order = HPAGE_PMD_ORDER;
static unsigned int count = 1;
static unsigned int cpu;
static bool ballast;

/* What is held, with the order it was allocated with. */
static LIST_HEAD(pages);
static LIST_HEAD(free_before);
static unsigned int held_order;

struct cpu_times {
	u64 user_ns;
	u64 system_ns;
	u64 idle_ns;
	u64 steal_ns;
};

static struct result {
	unsigned int nr_allocated;
	unsigned int nr_failed;
	unsigned int nr_ballast;
	u64 elapsed_ns;
	u64 longest_ns;
	struct cpu_times times;
	struct cpu_times machine;
} result;

static u64 page_copy_ns;

/* --- A CPU's time --- */

static u64 idle_ns(unsigned int of)
{
	u64 idle_us = get_cpu_idle_time_us(of, NULL);

	/* Without a clock that stops when idle, ticks are all there is. */
	if (idle_us == -1ULL)
		return kcpustat_cpu(of).cpustat[CPUTIME_IDLE] +
		       kcpustat_cpu(of).cpustat[CPUTIME_IOWAIT];
	return (idle_us + get_cpu_iowait_time_us(of, NULL)) * NSEC_PER_USEC;
}

/* As /proc/stat has it, but in a tick's steps, not in hundredths of a second. */
static void add_times(struct cpu_times *times, unsigned int of)
{
	struct kernel_cpustat stat;

	kcpustat_cpu_fetch(&stat, of);
	times->user_ns += stat.cpustat[CPUTIME_USER] +
			  stat.cpustat[CPUTIME_NICE];
	times->system_ns += stat.cpustat[CPUTIME_SYSTEM] +
			    stat.cpustat[CPUTIME_IRQ] +
			    stat.cpustat[CPUTIME_SOFTIRQ];
	times->idle_ns += idle_ns(of);
	times->steal_ns += stat.cpustat[CPUTIME_STEAL];
}

static void read_times(struct cpu_times *own, struct cpu_times *machine)
{
	unsigned int of;

	*own = *machine = (struct cpu_times){};
	for_each_online_cpu(of)
		add_times(machine, of);
	add_times(own, cpu);
}

static void subtract_times(struct cpu_times *from, const struct cpu_times *what)
{
	from->user_ns -= what->user_ns;
	from->system_ns -= what->system_ns;
	from->idle_ns -= what->idle_ns;
	from->steal_ns -= what->steal_ns;
}

/* --- Pages --- */

static void free_list(struct list_head *list)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, list, lru) {
		list_del(&page->lru);
		__free_pages(page, held_order);
		cond_resched();
	}
}

static void free_all(void)
{
	free_list(&pages);
	free_list(&free_before);
}

static void take_ballast(void)
{
	struct page *page;

	/* Allocate only free memory: no reclaim, no compaction, no wakeups. */
	while ((page = alloc_pages_node(node, GFP_WANTED & ~__GFP_RECLAIM,
					order))) {
		list_add(&page->lru, &free_before);
		result.nr_ballast++;
		cond_resched();
	}
}

static void write_all(void)
{
	struct page *page;

	list_for_each_entry(page, &pages, lru) {
		for (unsigned int i = 0; i < 1U << held_order; i++) {
			void *at = kmap_local_page(page + i);

			memset(at, PATTERN, PAGE_SIZE);
			kunmap_local(at);
		}
		cond_resched();
	}
}

static void allocate(void)
{
	u64 start_ns = ktime_get_ns();
	unsigned int in_a_row = 0;

	while (result.nr_allocated < count && !fatal_signal_pending(current)) {
		u64 asked_ns = ktime_get_ns();
		struct page *page = alloc_pages_node(node, GFP_WANTED, order);
		u64 took_ns = ktime_get_ns() - asked_ns;

		result.longest_ns = max(result.longest_ns, took_ns);
		if (!page) {
			result.nr_failed++;
			if (++in_a_row == MOST_FAILURES)
				break;
			continue;
		}
		in_a_row = 0;
		list_add(&page->lru, &pages);
		result.nr_allocated++;
		cond_resched();
	}
	result.elapsed_ns = ktime_get_ns() - start_ns;
}

static void run_here(void)
{
	struct cpu_times before, machine_before;

	if (ballast)
		take_ballast();
	read_times(&before, &machine_before);
	allocate();
	read_times(&result.times, &result.machine);
	subtract_times(&result.times, &before);
	subtract_times(&result.machine, &machine_before);
	write_all();
}

static int run_to_its_end(void)
{
	cpumask_var_t allowed;
	int error;

	if (!alloc_cpumask_var(&allowed, GFP_KERNEL))
		return -ENOMEM;
	held_order = order;
	result = (struct result){};
	cpumask_copy(allowed, current->cpus_ptr);
	error = set_cpus_allowed_ptr(current, cpumask_of(cpu));
	if (!error) {
		run_here();
		set_cpus_allowed_ptr(current, allowed);
	}
	free_cpumask_var(allowed);
	return error;
}

/* --- Copies --- */

static void free_small(struct list_head *list)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, list, lru) {
		list_del(&page->lru);
		__free_page(page);
	}
}

static bool allocate_small(struct list_head *list)
{
	for (unsigned int i = 0; i < COPIED_PAGES; i++) {
		struct page *page = alloc_page(GFP_HIGHUSER | __GFP_ZERO);

		if (!page)
			return false;
		list_add(&page->lru, list);
	}
	return true;
}

static int measure_copy(void)
{
	struct page *from, *to;
	LIST_HEAD(sources);
	LIST_HEAD(targets);
	int error = -ENOMEM;
	u64 start_ns;

	if (!allocate_small(&sources) || !allocate_small(&targets))
		goto out;
	error = 0;
	to = list_first_entry(&targets, struct page, lru);
	start_ns = ktime_get_ns();
	list_for_each_entry(from, &sources, lru) {
		error |= folio_mc_copy(page_folio(to), page_folio(from));
		to = list_next_entry(to, lru);
	}
	page_copy_ns = div_u64(ktime_get_ns() - start_ns, COPIED_PAGES);
out:
	free_small(&sources);
	free_small(&targets);
	return error;
}

/* --- Parameters --- */

static int set_node(const char *text, const struct kernel_param *param)
{
	int number, error = kstrtoint(text, 0, &number);

	if (error)
		return error;
	if (number < 0 || number >= MAX_NUMNODES ||
	    !node_state(number, N_MEMORY)) {
		pr_err("node=%d: no node with memory\n", number);
		return -EINVAL;
	}
	node = number;
	return 0;
}

static const struct kernel_param_ops node_ops = {
	.set = set_node,
	.get = param_get_int,
};
module_param_cb(node, &node_ops, &node, 0644);
MODULE_PARM_DESC(node, "the node whose pages are wanted");

static int set_order(const char *text, const struct kernel_param *param)
{
	unsigned int number;
	int error = kstrtouint(text, 0, &number);

	if (error)
		return error;
	if (number > MAX_PAGE_ORDER) {
		pr_err("order=%u: at most %u\n", number, MAX_PAGE_ORDER);
		return -EINVAL;
	}
	order = number;
	return 0;
}

static const struct kernel_param_ops order_ops = {
	.set = set_order,
	.get = param_get_uint,
};
module_param_cb(order, &order_ops, &order, 0644);
MODULE_PARM_DESC(order, "small pages of one, as a power of two");

static int set_cpu(const char *text, const struct kernel_param *param)
{
	unsigned int number;
	int error = kstrtouint(text, 0, &number);

	if (error)
		return error;
	if (number >= nr_cpu_ids || !cpu_online(number)) {
		pr_err("cpu=%u: not online\n", number);
		return -EINVAL;
	}
	cpu = number;
	return 0;
}

static const struct kernel_param_ops cpu_ops = {
	.set = set_cpu,
	.get = param_get_uint,
};
module_param_cb(cpu, &cpu_ops, &cpu, 0644);
MODULE_PARM_DESC(cpu, "the CPU that allocates");

module_param(count, uint, 0644);
MODULE_PARM_DESC(count, "pages to allocate; 0: only ballast");

module_param(ballast, bool, 0644);
MODULE_PARM_DESC(ballast, "1: first take the blocks that are free");

static int set_run(const char *text, const struct kernel_param *param)
{
	bool wanted;
	int error = kstrtobool(text, &wanted);

	if (error)
		return error;
	/* Not while it is loaded, nor when all has been freed for the last time. */
	if (THIS_MODULE->state != MODULE_STATE_LIVE)
		return -ENODEV;
	if (!wanted) {
		free_all();
		return 0;
	}
	if (!list_empty(&pages) || !list_empty(&free_before)) {
		pr_err("run=1: pages are held; free them by run=0\n");
		return -EBUSY;
	}
	return run_to_its_end();
}

static int get_run(char *buffer, const struct kernel_param *param)
{
	bool held = !list_empty(&pages) || !list_empty(&free_before);

	return sysfs_emit(buffer, "%d\n", held);
}

static const struct kernel_param_ops run_ops = {
	.set = set_run,
	.get = get_run,
};
module_param_cb(run, &run_ops, NULL, 0644);
MODULE_PARM_DESC(run, "1: allocate; 0: free all");

static int get_result(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer,
			  "allocated=%u elapsed_ns=%llu page_copy_ns=%llu nr_failed=%u longest_ns=%llu ballast=%u user_ns=%llu system_ns=%llu idle_ns=%llu machine_user_ns=%llu machine_system_ns=%llu machine_idle_ns=%llu machine_steal_ns=%llu\n",
			  result.nr_allocated, result.elapsed_ns, page_copy_ns,
			  result.nr_failed, result.longest_ns,
			  result.nr_ballast, result.times.user_ns,
			  result.times.system_ns, result.times.idle_ns,
			  result.machine.user_ns, result.machine.system_ns,
			  result.machine.idle_ns, result.machine.steal_ns);
}

static const struct kernel_param_ops result_ops = {
	.get = get_result,
};
module_param_cb(result, &result_ops, NULL, 0444);
MODULE_PARM_DESC(result, "of the last run");

static int __init order9_init(void)
{
	return measure_copy();
}
module_init(order9_init);

static void __exit order9_exit(void)
{
	/* Parameters can be written to until after this; then set_run() refuses. */
	kernel_param_lock(THIS_MODULE);
	free_all();
	kernel_param_unlock(THIS_MODULE);
}
module_exit(order9_exit);

MODULE_DESCRIPTION("Time the allocation of huge pages");
MODULE_LICENSE("GPL");
