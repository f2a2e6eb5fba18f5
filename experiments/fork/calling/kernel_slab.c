// SPDX-License-Identifier: GPL-2.0-only
/*
 * For a fork as a call: the kernel's slab allocator, made anew on each node
 * as the boot makes it, and what is read of it.
 */
#include <linux/maple_tree.h>
#include <linux/mm.h>
#include <linux/percpu_counter.h>
#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "internal.h"
#include "slab.h"
#include "kernel.h"
#include "calling_kernel.h"
#include "node.h"

/* Static in lib/percpu_counter.c, where CPUs can be plugged; made global by `objects`. */
#ifdef CONFIG_HOTPLUG_CPU
extern struct list_head percpu_counters;
#endif

/* What other caches and lists were is gone with the node that they were on. */
static void forget(void)
{
	slab_state = DOWN;
	INIT_LIST_HEAD(&slab_caches);
	memset(kmalloc_caches, 0, sizeof(kmalloc_caches));
	INIT_LIST_HEAD(&pgd_list);
#ifdef CONFIG_HOTPLUG_CPU
	INIT_LIST_HEAD(&percpu_counters);
#endif
}

/*
 * Where a node has no partial slab, other nodes are asked, 1000 times of 1024 as
 * the time-stamp counter has it. There are none; asked each time, each sample
 * executes the same.
 */
static void ask_other_nodes(void)
{
#ifdef CONFIG_NUMA
	struct kmem_cache *cache;

	list_for_each_entry(cache, &slab_caches, list)
		cache->remote_node_defrag_ratio = 1024;
#endif
}

void calling_boot_caches(void)
{
	forget();
	/* As mm_core_init() and start_kernel(), and in their order. */
	kmem_cache_init();
	maple_tree_init();
	mm_cache_init();
	anon_vma_init();
	proc_caches_init();
	ask_other_nodes();
}

void calling_shrink_caches(void)
{
	struct kmem_cache *cache;

	list_for_each_entry(cache, &slab_caches, list)
		kmem_cache_shrink(cache);
}

static void list_caches(struct calling_result *result)
{
	struct kmem_cache *cache;

	result->nr_caches = 0;
	list_for_each_entry(cache, &slab_caches, list) {
		if (result->nr_caches == CALLING_MOST_CACHES)
			return;
		result->caches[result->nr_caches++] = (struct calling_cache){
			.cache = cache, .name = cache->name,
		};
	}
}

/* Whether the allocator keeps its own objects there, as many as it likes. */
static bool is_its_own(const struct kmem_cache *cache)
{
#ifdef HAVE_SHEAVES
	return !strncmp(cache->name, "kmalloc-", 8);
#else
	return false;
#endif
}

static void count_slab(struct calling_result *result, const struct slab *slab)
{
	unsigned long i;

	if (is_its_own(slab->slab_cache)) {
		result->nr_own_frames += folio_nr_pages((const struct folio *)slab);
		return;
	}
	for (i = 0; i < result->nr_caches; i++)
		if (result->caches[i].cache == slab->slab_cache)
			result->caches[i].nr += slab->inuse;
}

/* No CPU has a slab of its own any more: in each slab the number is exact. */
void calling_count_objects(struct calling_result *result)
{
	unsigned long pfn, end = NODE_PFN + calling_world.request.nr_pages;

	list_caches(result);
	result->nr_own_frames = 0;
	for (pfn = NODE_PFN; pfn < end; pfn++) {
		struct page *page = pfn_to_page(pfn);

		if (!PageTail(page) && PageSlab(page))
			count_slab(result, (struct slab *)page);
	}
}
