// SPDX-License-Identifier: GPL-2.0-only
/* Check that no object of a process is leaked when all processes have ended. */
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/vmstat.h>
#include "percpu-internal.h"
#include "slab.h"
#include "census.h"
#include "checks.h"
#include "hosted.h"
#include "steps.h"

/* Count the objects in use. kmem_cache_shrink() flushes the per-CPU slabs first. */
static unsigned long nr_objects(struct kmem_cache *cache)
{
	unsigned long frame, nr = 0;

	kmem_cache_shrink(cache);
	for (frame = 0; frame < computer.nr_frames; frame++) {
		struct page *page = pfn_to_page(LIBMM_FIRST_PFN + frame);

		if (PageSlab(page) && page_slab(page)->slab_cache == cache)
			nr += page_slab(page)->inuse;
	}
	return nr;
}

/* A merged cache also holds objects of other types, so it is not checked. */
static void check_left(const char *name, unsigned long most)
{
	struct kmem_cache *cache;
	unsigned long nr;

	list_for_each_entry(cache, &slab_caches, list) {
		if (cache->refcount != 1 || strcmp(cache->name, name))
			continue;
		nr = nr_objects(cache);
		if (nr > most)
			wrong("%s: %lu objects are left when all processes have ended", name, nr);
	}
}

/* Allocated per-CPU memory, in units of PCPU_MIN_ALLOC_SIZE (4 bytes). */
static unsigned long nr_percpu_units(void)
{
	struct pcpu_chunk *chunk;
	unsigned long nr = 0;
	int slot;

	for (slot = 0; slot < pcpu_nr_slots; slot++)
		list_for_each_entry(chunk, &pcpu_chunk_lists[slot], list)
			nr += bitmap_weight(chunk->alloc_map, pcpu_chunk_map_bits(chunk));
	return nr;
}

/* Start and end one more process: it must not leak any per-CPU memory. */
static void check_percpu_left(void)
{
	unsigned long before = nr_percpu_units(), nr;

	if (!begin_again())
		return;
	end_processes();
	settle();
	rcu_barrier();
	nr = nr_percpu_units();
	if (nr > before)
		wrong("a process that has ended leaves %lu bytes for each CPU",
		      (nr - before) * PCPU_MIN_ALLOC_SIZE);
}

/* The only file that may still be open is that of a swap area. */
void check_open_files(void)
{
	rcu_barrier();
	check_left("filp", has_swap_area());
}

/*
 * khugepaged and ksmd drop an mm that has exited only at their next scan, and
 * ksmd keeps its anon_vmas until then. An OOM victim's signal_struct pins the
 * mm (oom_mm) as long as the task exists.
 */
void check_what_is_left(void)
{
	unsigned long events[NR_VM_EVENT_ITEMS];

	all_vm_events(events);
	rcu_barrier();
	check_left("vm_area_struct", 0);
	check_left("vma_lock", 0);
	check_left("anon_vma_chain", 0);
	check_left("userfaultfd_ctx_cache", 0);
	check_left("anon_vma", 2 * ksm_rmap_items);	/* each has its root, too */
	if (list_empty(&ksm_mm_head.slot.mm_node) && list_empty(&khugepaged_scan.mm_head))
		check_left("mm_struct", events[OOM_KILL]);
	check_percpu_left();
}
