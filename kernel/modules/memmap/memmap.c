// SPDX-License-Identifier: GPL-2.0-only
/*
 * memmap: what memmap_init_zone_device() was asked for, and how long it took.
 *
 * An observer: it changes nothing that it watches. In debugfs, folder ream:
 *
 *   facts            "name value" per line: the layout of struct page and of
 *                    what lists pages in this kernel, as its own compiler sees
 *                    them
 *   calls            "key=value ..." per line: the calls that returned since
 *                    the file was last opened; opening takes them away
 *   count_page_refs  only with CONFIG_DEBUG_PAGE_REF: write 1 to enable the
 *                    page_ref_set tracepoint and count from 0, 0 to disable
 *                    it; read the number of events
 *
 * The clock runs from the entry probe to the return probe, so it holds one
 * trap more than the function; that is less than a microsecond.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/memblock.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/module.h>
#include <linux/poison.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/vmstat.h>
#ifdef CONFIG_ARM64
#include <asm/sysreg.h>
#endif
#ifdef CONFIG_DEBUG_PAGE_REF
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/tracepoint.h>
#include <trace/events/page_ref.h>
#endif
#include "marks.h"

/* A bind makes a call per range; readers read after each bind. */
#define MOST_CALLS 64

/* Calls at the same time; one too many is counted as lost, not silent. */
#define MOST_AT_ONCE 16

/* lab/ream/stage/module_facts.py reads them with this size. */
#define FACT_NAME_BYTES 56

static struct dentry *folder;

/*
 * The facts: in a section of their own and with no pointer among them, so that
 * they can be read out of the module's file, too, where no guest runs yet.
 */
static const struct fact {
	char name[FACT_NAME_BYTES];
	u64 value;
} facts[] __used __section(".ream.facts") = {
#include "facts.h"
#include "buddy_facts.h"
	/*
	 * Only a guest has these: a zone that may be in use, pages that a
	 * CPU has taken off the lists to hand them out later, and those of
	 * a thread's stack.
	 */
	{ "zone.lock", offsetof(struct zone, lock) },
	{ "zone.per_cpu_pageset", offsetof(struct zone, per_cpu_pageset) },
	{ "per_cpu_pages.lists", offsetof(struct per_cpu_pages, lists) },
	{ "NR_PCP_LISTS", NR_PCP_LISTS },
	{ "NR_LOWORDER_PCP_LISTS", NR_LOWORDER_PCP_LISTS },
	{ "MIGRATE_PCPTYPES", MIGRATE_PCPTYPES },
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	{ "HPAGE_PMD_ORDER", HPAGE_PMD_ORDER },
#endif
	{ "THREAD_SIZE", THREAD_SIZE },
};

static int facts_show(struct seq_file *to, void *unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
		seq_printf(to, "%s %llu\n", facts[i].name, facts[i].value);
#ifdef CONFIG_ARM64
	/* A reader of the kernel's memory from outside starts at these page tables. */
	seq_printf(to, "TTBR1_EL1 %llu\n", read_sysreg(ttbr1_el1));
#endif
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(facts);

/* The calls */

struct call {
	unsigned long start_pfn;
	unsigned long nr_pages;
	int nid;
	const struct dev_pagemap *pgmap;
	enum memory_type type;
	unsigned long order;
	bool altmap;
	unsigned long altmap_base_pfn;
	unsigned long altmap_reserve;
	unsigned long altmap_free;
	const struct page *map;
	bool early;
	u64 window;
	u64 time_ns;
};

struct calls {
	unsigned int nr_calls;
	unsigned int nr_lost;
	struct call call[MOST_CALLS];
};

static DEFINE_SPINLOCK(calls_lock);
static struct calls calls;

/* Its parameters, in the order in which x86-64 passes them. */
static int call_entered(struct kretprobe_instance *instance,
			struct pt_regs *regs)
{
	struct call *call = (struct call *)instance->data;
	struct zone *zone = (struct zone *)regs_get_kernel_argument(regs, 0);

	*call = (struct call) {
		.start_pfn = regs_get_kernel_argument(regs, 1),
		.nr_pages = regs_get_kernel_argument(regs, 2),
		.nid = zone_to_nid(zone),
		.pgmap = (void *)regs_get_kernel_argument(regs, 3),
	};
	call->window = ktime_get_ns();
	mark_name(call->window);
	call->time_ns = ktime_get_ns();
	mark_begin();
	return 0;
}

NOKPROBE_SYMBOL(call_entered);

/* The caller still holds the pagemap and the sections: all is there to read. */
static int call_returned(struct kretprobe_instance *instance,
			 struct pt_regs *regs)
{
	struct call *call = (struct call *)instance->data;
	const struct dev_pagemap *pgmap = call->pgmap;
	unsigned long irq_flags;
	u64 end_ns;

	mark_end();
	end_ns = ktime_get_ns();
	call->time_ns = end_ns - call->time_ns;
	call->type = pgmap->type;
	call->order = pgmap->vmemmap_shift;
	call->altmap = pgmap->flags & PGMAP_ALTMAP_VALID;
	if (call->altmap) {
		call->altmap_base_pfn = pgmap->altmap.base_pfn;
		call->altmap_reserve = pgmap->altmap.reserve;
		call->altmap_free = pgmap->altmap.free;
	}
	call->map = pfn_to_page(call->start_pfn);
	call->early = early_section(__pfn_to_section(call->start_pfn));

	spin_lock_irqsave(&calls_lock, irq_flags);
	if (calls.nr_calls < MOST_CALLS)
		calls.call[calls.nr_calls++] = *call;
	else
		calls.nr_lost++;
	spin_unlock_irqrestore(&calls_lock, irq_flags);
	return 0;
}

NOKPROBE_SYMBOL(call_returned);

static struct kretprobe call_probe = {
	.kp.symbol_name = "memmap_init_zone_device",
	.entry_handler = call_entered,
	.handler = call_returned,
	.data_size = sizeof(struct call),
	.maxactive = MOST_AT_ONCE,
};

static int calls_show(struct seq_file *to, void *unused)
{
	const struct calls *taken = to->private;

	for (unsigned int i = 0; i < taken->nr_calls; i++) {
		const struct call *call = &taken->call[i];

		seq_printf(to, "start_pfn=%lu nr_pages=%lu nid=%d ",
			   call->start_pfn, call->nr_pages, call->nid);
		seq_printf(to, "pgmap=%lu type=%d order=%lu ",
			   (unsigned long)call->pgmap, call->type, call->order);
		seq_printf(to, "altmap=%d altmap_base_pfn=%lu ", call->altmap,
			   call->altmap_base_pfn);
		seq_printf(to, "altmap_reserve=%lu altmap_free=%lu ",
			   call->altmap_reserve, call->altmap_free);
		seq_printf(to, "map=%lu early=%d window=%llu time_ns=%llu\n",
			   (unsigned long)call->map, call->early, call->window, call->time_ns);
	}
	return 0;
}

/*
 * A seq_file may show the same line twice, so the recorded calls are taken only
 * once, on open. If some calls were not recorded, the reader gets an error.
 */
static int calls_open(struct inode *inode, struct file *file)
{
	struct calls *taken = kmalloc(sizeof(*taken), GFP_KERNEL);
	int error;

	if (!taken)
		return -ENOMEM;
	spin_lock_irq(&calls_lock);
	*taken = calls;
	calls.nr_calls = 0;
	calls.nr_lost = 0;
	taken->nr_lost += call_probe.nmissed;
	call_probe.nmissed = 0;
	spin_unlock_irq(&calls_lock);

	if (taken->nr_lost) {
		pr_err("%u calls of %s were not recorded\n", taken->nr_lost,
		       call_probe.kp.symbol_name);
		error = -EOVERFLOW;
		goto err_free;
	}
	error = single_open(file, calls_show, taken);
	if (error)
		goto err_free;
	return 0;

err_free:
	kfree(taken);
	return error;
}

static int calls_release(struct inode *inode, struct file *file)
{
	kfree(((struct seq_file *)file->private_data)->private);
	return single_release(inode, file);
}

static const struct file_operations calls_fops = {
	.owner = THIS_MODULE,
	.open = calls_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = calls_release,
};

/* The page_ref_set tracepoint */

#ifdef CONFIG_DEBUG_PAGE_REF
static DEFINE_MUTEX(page_refs_lock);
static bool page_refs_counted;
static DEFINE_PER_CPU(u64, nr_page_refs);

static void count_page_ref(void *unused, struct page *page, int count)
{
	this_cpu_inc(nr_page_refs);
}

static int page_refs_read(void *unused, u64 *count)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(nr_page_refs, cpu);
	*count = sum;
	return 0;
}

static void stop_counting_page_refs(void)
{
	unregister_trace_page_ref_set(count_page_ref, NULL);
	tracepoint_synchronize_unregister();
	page_refs_counted = false;
}

static int page_refs_write(void *unused, u64 on)
{
	int cpu, error = 0;

	if (on > 1)
		return -EINVAL;
	mutex_lock(&page_refs_lock);
	if (page_refs_counted && !on) {
		stop_counting_page_refs();
	} else if (!page_refs_counted && on) {
		for_each_possible_cpu(cpu)
			per_cpu(nr_page_refs, cpu) = 0;
		error = register_trace_page_ref_set(count_page_ref, NULL);
		page_refs_counted = !error;
	}
	mutex_unlock(&page_refs_lock);
	return error;
}
DEFINE_DEBUGFS_ATTRIBUTE(page_refs_fops, page_refs_read, page_refs_write,
			 "%llu\n");

static void __init page_refs_init(void)
{
	debugfs_create_file_unsafe("count_page_refs", 0600, folder, NULL,
				   &page_refs_fops);
}

static void page_refs_exit(void)
{
	if (page_refs_counted)
		stop_counting_page_refs();
}
#else
static void __init page_refs_init(void)
{
}

static void page_refs_exit(void)
{
}
#endif

static int __init memmap_init(void)
{
	int error = register_kretprobe(&call_probe);

	if (error) {
		pr_err("cannot probe %s: error %d\n",
		       call_probe.kp.symbol_name, error);
		return error;
	}
	folder = debugfs_create_dir("ream", NULL);
	debugfs_create_file("facts", 0400, folder, NULL, &facts_fops);
	debugfs_create_file("calls", 0400, folder, NULL, &calls_fops);
	page_refs_init();
	return 0;
}
module_init(memmap_init);

static void __exit memmap_exit(void)
{
	debugfs_remove(folder);
	page_refs_exit();
	unregister_kretprobe(&call_probe);
}
module_exit(memmap_exit);

MODULE_DESCRIPTION("Record the calls of memmap_init_zone_device()");
MODULE_LICENSE("GPL");
