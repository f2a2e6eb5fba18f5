// SPDX-License-Identifier: GPL-2.0-only
/* Calls of allocators that other parts of the kernel use. calls.def lists the functions. */
#include <linux/cma.h>
#include <linux/memcontrol.h>
#include <linux/memory_hotplug.h>
#include <linux/mempool.h>
#include <linux/page_reporting.h>
#include <linux/pagemap.h>
#include <linux/percpu.h>
#include <linux/sched/mm.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "internal.h"
#include "calls.h"
#include "groups.h"
#include "hosted.h"
#include "steps.h"
#include "trees.h"

struct page *pages[MOST_PAGES];

long free_pages_of(long nr)
{
	while (nr--)
		__free_page(pages[nr]);
	return -ENOMEM;
}

long take_pages(long nr)
{
	long i;

	for (i = 0; i < nr; i++) {
		pages[i] = alloc_page(GFP_KERNEL);
		if (!pages[i])
			return free_pages_of(i);
	}
	return 0;
}

/* Map pages contiguously: vm_map_ram(), vmap(), or vmap() and vm_unmap_aliases(). */
long call_map_pages(long start, long bytes, long how, long nr)
{
	void *at;

	nr = clamp(nr, 1L, MOST_PAGES);
	if (take_pages(nr))
		return -ENOMEM;
	at = how ? vmap(pages, nr, VM_MAP, PAGE_KERNEL) : vm_map_ram(pages, nr, NUMA_NO_NODE);
	if (at) {
		memset(at, 1, nr << PAGE_SHIFT);
		if (vmalloc_to_page(at) != pages[0])
			wrong("vmalloc_to_page() finds another page than was mapped");
	}
	if (at && how)
		vunmap(at);
	else if (at)
		vm_unmap_ram(at, nr);
	if (how > 1)
		vm_unmap_aliases();
	free_pages_of(nr);
	return at ? 0 : -ENOMEM;
}

long call_vmalloc(long start, long bytes, long how, long nr)
{
	size_t size = clamp(nr, 1L, 4096L) << PAGE_SHIFT;
	void *at = how == 0 ? vmalloc_user(size) : how == 1 ? vmalloc_32(size) :
		   how == 2 ? vmalloc_huge(size, GFP_KERNEL) : how == 3 ? vzalloc(size) :
		   how == 4 ? vmalloc_32_user(size) : vrealloc(vmalloc(size), 3 * size, GFP_KERNEL);

	if (!at)
		return -ENOMEM;
	memset(at, 1, size);
	if (nr % 2)
		vfree_atomic(at);
	else
		vfree(at);
	return 0;
}

long call_alloc_contig(long start, long bytes, long node, long nr)
{
	struct page *first = alloc_contig_pages(clamp(nr, 1L, 4096L), GFP_KERNEL, node, NULL);

	if (!first)
		return -ENOMEM;
	enter_kernel();
	free_contig_range(page_to_pfn(first), clamp(nr, 1L, 4096L));
	leave_kernel();
	return 0;
}

long call_alloc_pages(long start, long bytes, long how, long nr)
{
	size_t size = clamp(nr, 1L, 512L) << PAGE_SHIFT;
	struct page_frag_cache cache = { };
	void *at;

	if (how == 0) {
		at = alloc_pages_exact(size, GFP_KERNEL);
		free_pages_exact(at, size);
		return at ? 0 : -ENOMEM;
	}
	if (how == 1) {
		at = page_frag_alloc(&cache, nr % PAGE_SIZE + 1, GFP_KERNEL);
		if (at)
			page_frag_free(at);
		page_frag_cache_drain(&cache);
		return at ? 0 : -ENOMEM;
	}
	at = (void *)get_zeroed_page(GFP_KERNEL);
	if (at && memchr_inv(at, 0, PAGE_SIZE))
		wrong("get_zeroed_page() returns a page that is not zero");
	if (at && how == 2)
		dump_page(virt_to_page(at), "a step asked for it");
	free_page((unsigned long)at);
	return at ? 0 : -ENOMEM;
}

/* krealloc() with __GFP_ZERO must clear all bytes that the object grows by. */
static void check_cleared(size_t size)
{
	size_t least = size / 2 + 1;
	char *one = kzalloc(least, GFP_KERNEL), *more;

	if (!one)
		return;
	memset(one, 1, least);
	more = krealloc(one, least + 1, GFP_KERNEL | __GFP_ZERO);
	if (more)
		more[least] = 1;
	one = more ? krealloc(more, size, GFP_KERNEL | __GFP_ZERO) : NULL;
	more = one ? krealloc(one, 3 * size, GFP_KERNEL | __GFP_ZERO) : NULL;
	if (more && (memchr_inv(more, 1, min(size, least + 1)) ||
		     memchr_inv(more + max(size, least + 1), 0, 3 * size - max(size, least + 1))))
		wrong("an object that grew with zeroes has other bytes");
	kfree(more);
}

long call_slab(long start, long bytes, long size, long nr)
{
	struct kmem_cache *cache = kmem_cache_create("of-a-step", clamp(size, 8L, 8192L), 0,
						     SLAB_ACCOUNT | SLAB_HWCACHE_ALIGN, NULL);
	void *some[MOST_PAGES], *one;
	int done;

	nr = clamp(nr, 1L, MOST_PAGES);
	if (!cache)
		return -ENOMEM;
	/* It allocates all or none. Since 7.3 it returns a bool. */
	done = kmem_cache_alloc_bulk(cache, GFP_KERNEL, nr, some) ? nr : 0;
	kmem_cache_free_bulk(cache, done, some);
	one = kmem_cache_alloc_node(cache, GFP_KERNEL_ACCOUNT, 0);
	if (one)
		kmem_cache_free(cache, one);
	kmem_cache_shrink(cache);
	kmem_cache_destroy(cache);
	one = krealloc(kmalloc(size, GFP_KERNEL), 2 * size, GFP_KERNEL);
	check_cleared(clamp(size, 8L, 8192L));
	one = kvrealloc(one, 4 * size, GFP_KERNEL);
	if (one && !is_vmalloc_addr(one) && ksize(one) < 4 * size)
		wrong("an object has fewer bytes than were asked for");
	kvfree_sensitive(one, size);
	return done == nr ? 0 : -ENOMEM;
}

static long slab_bytes(struct mem_cgroup *memcg)
{
	sum_up_groups();
	return memcg ? memcg_page_state(memcg, NR_SLAB_UNRECLAIMABLE_B) : 0;
}

/* Slab objects that are charged on allocation, and others that are charged later. */
long call_charge(long start, long bytes, long size, long nr)
{
	/* Each CPU may hold back up to a page that the memcg does not count yet. */
	const long unknown = num_online_cpus() * PAGE_SIZE;
	struct mem_cgroup *memcg = get_mem_cgroup_from_mm(current->mm);
	void *some[MOST_PAGES], *one;
	long i, before, after;

	for (i = 0; i < MOST_PAGES; i++)
		some[i] = kmalloc(PAGE_SIZE, GFP_KERNEL_ACCOUNT);
	before = slab_bytes(memcg);
	for (i = 0; i < clamp(nr, 1L, MOST_PAGES); i++) {
		one = kmalloc(clamp(size, 8L, 1L << 18), GFP_KERNEL);
		if (one)
			kmem_cache_charge(one, GFP_KERNEL);
		kfree(one);
	}
	after = slab_bytes(memcg);
	if (abs(after - before) > unknown)
		wrong("a group had %ld bytes of slabs, and has %ld after all objects are freed",
		      before, after);
	for (i = 0; i < MOST_PAGES; i++)
		kfree(some[i]);
	mem_cgroup_put(memcg);
	return 0;
}

/* Allocate in atomic context, as interrupt handlers and holders of spinlocks do. */
long call_atomic(long start, long bytes, long size, long nr)
{
	const gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN;
	struct page *some[MOST_PAGES] = { };
	void __percpu *areas;
	void *one;
	long i, done;

	nr = clamp(nr, 1L, MOST_PAGES);
	preempt_disable();
	done = alloc_pages_bulk_mempolicy_noprof(gfp, nr, some);
	one = kmalloc(clamp(size, 8L, 1L << 16), gfp);
	areas = __alloc_percpu_gfp(clamp(size, 8L, 4096L), 8, gfp);
	for (i = 0; i < done; i++)
		__free_page(some[i]);
	kfree(one);
	free_percpu(areas);
	preempt_enable();
	return done;
}

long call_mempool(long start, long bytes, long how, long nr)
{
	mempool_t *pool = how ? mempool_create_page_pool(4, 0) : mempool_create_kmalloc_pool(4, 64);
	void *one;

	if (!pool)
		return -ENOMEM;
	mempool_resize(pool, clamp(nr, 1L, 64L));
	one = mempool_alloc(pool, GFP_KERNEL);
	if (one)
		mempool_free(one, pool);
	one = mempool_alloc_preallocated(pool);
	if (one)
		mempool_free(one, pool);
	mempool_destroy(pool);
	return 0;
}

#define ENOUGH_PAGES 16384	/* with this many free, a per-CPU allocation must succeed */

/* A task that must not start I/O may still sleep, as with PR_SET_IO_FLUSHER. */
static void __percpu *area_without_io(size_t size)
{
	unsigned int flags = memalloc_noio_save();
	void __percpu *area = __alloc_percpu_gfp(size, 8, GFP_KERNEL);

	memalloc_noio_restore(flags);
	if (!area && global_zone_page_state(NR_FREE_PAGES) > ENOUGH_PAGES)
		wrong("there is no area of %zu bytes for CPUs, and %lu frames are free",
		      size, global_zone_page_state(NR_FREE_PAGES));
	return area;
}

/* Allocate per-CPU areas, and free them again. */
long call_percpu(long start, long bytes, long size, long nr)
{
	void __percpu *areas[128];
	long i, done;

	size = clamp(size, 4L, 32768L);
	nr = clamp(nr, 1L, (long)ARRAY_SIZE(areas));
	for (done = 0; done < nr; done++) {
		areas[done] = done % 2 ? __alloc_percpu_gfp(size, 8, GFP_KERNEL_ACCOUNT) :
					 area_without_io(size);
		if (!areas[done])
			break;
	}
	for (i = 0; i < done; i++)
		free_percpu(areas[i]);
	return done;
}

static struct cma *first_area;

static int note_area(struct cma *cma, void *unused)
{
	first_area = cma;
	return 1;
}

long call_cma(long start, long bytes, long align, long nr)
{
	struct page *first;

	cma_for_each_area(note_area, NULL);
	nr = clamp(nr, 1L, 1024L);
	first = first_area ? cma_alloc(first_area, nr, clamp(align, 0L, 9L), true) : NULL;
	return first ? !cma_release(first_area, first, nr) : -ENOMEM;
}

/* Remove an offline section and add it again. The first try may fail on request. */
static void remove_and_add(unsigned long pfn, int node)
{
	struct mhp_params params = { .pgprot = PAGE_KERNEL };

	__remove_pages(pfn, PAGES_PER_SECTION, NULL, NULL);
	synchronize_rcu();
	if (TIMED(__add_pages(node, pfn, PAGES_PER_SECTION, &params)) &&
	    __add_pages(node, pfn, PAGES_PER_SECTION, &params))
		give_up("a section cannot be added again");
}

/* Take a memory block of a node offline and online again. */
long call_offline(long start, long bytes, long number, long removes)
{
	unsigned long pfn = LIBMM_FIRST_PFN + number * PAGES_PER_SECTION;
	struct zone *zone;
	long error;

	if (number < 0 || !is_ram(pfn))
		return -EINVAL;
	zone = page_zone(pfn_to_page(pfn));
	/* drivers/base/memory.c: a block that spans zones cannot go offline. */
	if (page_zone(pfn_to_page(pfn + PAGES_PER_SECTION - 1)) != zone)
		return -EINVAL;
	error = offline_pages(pfn, PAGES_PER_SECTION, zone, NULL);
	if (error)
		return error;
	if (removes)
		remove_and_add(pfn, zone_to_nid(zone));
	return online_pages(pfn, PAGES_PER_SECTION, zone, NULL);
}

/*
 * Whether a page was freed while it was hwpoisoned. The buddy allocator did not take it.
 * unpoison_memory() would only clear the flag, and the page would be leaked.
 */
static bool was_freed_broken(struct page *page)
{
	return !page_count(page) && !PageHuge(page) && !is_free_buddy_page(page) &&
	       page_private(page) != MAGIC_HWPOISON;
}

/* Unpoison all hwpoisoned pages. Return: how many. */
long call_unpoison(long start, long bytes, long unused, long unused2)
{
	unsigned long frame;
	struct page *page;
	long nr = 0;

	for (frame = 0; frame < computer.nr_frames; frame++) {
		page = pfn_to_page(LIBMM_FIRST_PFN + frame);
		if (PageHWPoison(page) && !was_freed_broken(page))
			nr += !unpoison_memory(LIBMM_FIRST_PFN + frame);
	}
	return nr;
}

static int report_nothing(struct page_reporting_dev_info *device, struct scatterlist *list,
			  unsigned int nr)
{
	return 0;
}

/* Register for free page reporting, as a balloon driver does. */
long call_report_free(long start, long bytes, long ms, long order)
{
	static struct page_reporting_dev_info device = { .report = report_nothing };
	struct page *page;
	long error;

	device.order = clamp(order, 1L, 9L);
	error = page_reporting_register(&device);
	if (error)
		return error;
	page = alloc_pages(GFP_KERNEL | __GFP_NOWARN, device.order);
	if (page)
		__free_pages(page, device.order);
	schedule_timeout_uninterruptible(msecs_to_jiffies(clamp(ms, 0L, 10000L)));
	page_reporting_unregister(&device);
	return 0;
}

/* --- large folios ------------------------------------------------------- */

/* Split a folio to @order, or to the lowest one its mapping allows. Drops the reference. */
static bool split(struct folio *folio, unsigned int order)
{
	struct address_space *mapping = folio->mapping;
	bool is_split = false;

	if (folio_test_large(folio) && folio_test_lru(folio) && !folio_test_hugetlb(folio) &&
	    !is_huge_zero_folio(folio) && folio_trylock(folio)) {
		/* Other files split only to order 0: huge_memory.c. */
		if (mapping && !folio_test_anon(folio))
			order = mapping_large_folio_support(mapping) && !shmem_mapping(mapping) ?
				max(order, mapping_min_folio_order(mapping)) : 0;
		is_split = TIMED(split_folio_to_order(folio, order)) == 0;
		folio_unlock(folio);
	}
	folio_put(folio);
	return is_split;
}

/* Split folios as split_huge_pages of debugfs does: those of a range, or all without one. */
long call_split(long start, long bytes, long order, long unused)
{
	struct page *page;
	long nr = 0, i;

	if (order < 0 || order >= HPAGE_PMD_ORDER)
		return -EINVAL;
	if (order)
		see_split_to_large();
	for (i = 0; i < bytes; i += PAGE_SIZE)
		if (get_user_pages_fast_only(start + i, 1, 0, &page) == 1)
			nr += split(page_folio(page), order);
	for (i = 0; !bytes && i < computer.nr_frames; i++) {
		page = pfn_to_page(LIBMM_FIRST_PFN + i);
		if (!PageTail(page) && folio_try_get(page_folio(page)))
			nr += split(page_folio(page), order);
	}
	return nr;
}
