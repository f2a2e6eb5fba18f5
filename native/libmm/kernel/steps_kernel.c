// SPDX-License-Identifier: GPL-2.0-only
/* Steps that no process asks for: reclaim, compaction, time, and the kernel's own memory. */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/compaction.h>
#include <linux/notifier.h>
#include <linux/oom.h>
#include <linux/swap.h>
#include <linux/vmalloc.h>
#include <linux/vmstat.h>
#include "internal.h"
#include "devices.h"
#include "hosted.h"
#include "steps.h"

#define MOST_HOGGED (1UL << 24)
#define NR_BLOCKS 8	/* huge pages that the step compact tries to allocate */

long step_swapon(long nr_pages, long flags)
{
	return turn_swap_on(nr_pages, flags);
}

/* swapoff(8) is a process of its own, which the OOM killer chooses first. */
long step_swapoff(void)
{
	static const struct step step = { .name = "swapoff", .run = (void *)turn_swap_off };

	return run_in_helper(&step, 0, 0);
}

/* Direct reclaim, 32 pages at a time. */
long step_reclaim(long nr)
{
	unsigned int flags = memalloc_noreclaim_save();
	long done = 0, tried;

	for (tried = 0; tried < nr; tried += SWAP_CLUSTER_MAX)
		done += TIMED(try_to_free_pages(node_zonelist(0, GFP_KERNEL), 0,
						GFP_HIGHUSER_MOVABLE, NULL));
	memalloc_noreclaim_restore(flags);
	return done;
}

long step_mthp(long orders)
{
	huge_anon_orders_always = orders & THP_ORDERS_ALL_ANON;
	return 0;
}

long step_compact(void)
{
	struct page *blocks[NR_BLOCKS];
	int i, nr = 0;

	for (i = 0; i < NR_BLOCKS; i++) {
		blocks[i] = TIMED(alloc_pages_noprof(GFP_TRANSHUGE | __GFP_NORETRY,
						     HPAGE_PMD_ORDER));
		nr += !!blocks[i];
	}
	for (i = 0; i < NR_BLOCKS; i++)
		if (blocks[i])
			__free_pages(blocks[i], HPAGE_PMD_ORDER);
	wakeup_kcompactd(NODE_DATA(0), HPAGE_PMD_ORDER, ZONE_NORMAL);
	return nr;
}

long step_wait(long ms)
{
	if (ms < 0)
		return -EINVAL;
	pass_time(msecs_to_jiffies(ms));
	return 0;
}

/* --- memory that the kernel uses itself -------------------------------- */

static struct page **hogged;
static unsigned long nr_hogged;

/* OOM notifier: free some pages before the OOM killer runs, as balloon drivers do. */
static int give_some_back(struct notifier_block *block, unsigned long unused, void *nr_freed)
{
	int i;

	for (i = 0; nr_hogged && i < HPAGE_PMD_NR; i++)
		__free_page(hogged[--nr_hogged]);
	*(unsigned long *)nr_freed += i;
	return NOTIFY_OK;
}

long step_hog(long nr_free, long every)
{
	static struct notifier_block block = { .notifier_call = give_some_back };
	unsigned long i, left = 0;

	if (nr_free < 0 || every < 0)
		return -EINVAL;
	if (!hogged) {
		hogged = host_alloc(MOST_HOGGED * sizeof(*hogged));
		register_oom_notifier(&block);
	}
	while (nr_hogged < MOST_HOGGED && global_zone_page_state(NR_FREE_PAGES) > nr_free) {
		/* With @every, use the reserves too: freeing every Nth page leaves no block. */
		const gfp_t gfp = (GFP_HIGHUSER_MOVABLE & ~__GFP_DIRECT_RECLAIM) |
				  __GFP_NORETRY | __GFP_NOWARN | (every ? __GFP_MEMALLOC : 0);
		struct page *page = alloc_pages_noprof(gfp, 0);

		if (!page)
			break;
		hogged[nr_hogged++] = page;
	}
	for (i = 0; every && i < nr_hogged; i++) {
		if (i % every)
			hogged[left++] = hogged[i];
		else
			__free_page(hogged[i]);
	}
	nr_hogged = every ? left : nr_hogged;
	return nr_hogged;
}

long step_release(void)
{
	while (nr_hogged)
		__free_page(hogged[--nr_hogged]);
	return 0;
}

long step_vmalloc(long nr)
{
	u64 *area;
	long i;

	if (nr <= 0)
		return -EINVAL;
	area = TIMED(vmalloc(nr << PAGE_SHIFT));
	if (!area)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		area[i * (PAGE_SIZE / sizeof(u64))] = i;
	for (i = 0; i < nr; i++)
		if (area[i * (PAGE_SIZE / sizeof(u64))] != i)
			wrong("page %ld of memory from vmalloc() holds another's word", i);
	enter_kernel();
	vfree(area);
	leave_kernel();
	return 0;
}
