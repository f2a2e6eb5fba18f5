// SPDX-License-Identifier: GPL-2.0-only
/*
 * kmalloc() of pages of the node, deliberately not the kernel's own: objects of
 * a power of two, the one that was freed last comes first. As there they lie in
 * pages of the page allocator, whose owner the kernel looks up. A page that once
 * held objects stays so.
 *
 * There is one cache, of the nodes of an XArray.
 */
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/xarray.h>
#include "kernel.h"
#include "remap_kernel.h"

#define LEAST_SHIFT 3

/* Read to be handed to us, and not looked at. mm/slab_common.c */
kmem_buckets kmalloc_caches[NR_KMALLOC_TYPES];

struct free_object {
	struct free_object *next;
};

static struct free_object *free_objects[PAGE_SHIFT];
static struct remap_slab slab;

void remap_reset_slab(void)
{
	memset(free_objects, 0, sizeof(free_objects));
	slab = (struct remap_slab){ };
}

struct remap_slab remap_read_slab(void)
{
	return slab;
}

/* A page that holds objects has their size where others have what is private to them. */
static void *new_pages(gfp_t flags, unsigned int order, unsigned long bytes)
{
	struct page *page = alloc_pages_node_noprof(0, flags & ~__GFP_ZERO, order);

	if (!page)
		return NULL;
	set_page_private(page, bytes);
	slab.nr_pages += 1UL << order;
	return page_address(page);
}

static bool fill(gfp_t flags, unsigned int shift)
{
	void *page = new_pages(flags, 0, 1UL << shift);
	unsigned long at;

	for (at = PAGE_SIZE; page && at; ) {
		struct free_object *object = page + (at -= 1UL << shift);

		object->next = free_objects[shift];
		free_objects[shift] = object;
	}
	return page;
}

static void *take(size_t size, gfp_t flags)
{
	unsigned int shift = max(order_base_2(size), LEAST_SHIFT);
	struct free_object *object;

	if (shift >= PAGE_SHIFT) {
		object = new_pages(flags, shift - PAGE_SHIFT, 1UL << shift);
	} else {
		if (!free_objects[shift] && !fill(flags, shift))
			return NULL;
		object = free_objects[shift];
		free_objects[shift] = object->next;
	}
	if (!object)
		return NULL;
	slab.nr_objects++;
	return flags & __GFP_ZERO ? memset(object, 0, size) : object;
}

static void give(void *object)
{
	struct page *page = virt_to_page(object);
	unsigned long bytes = page_private(page);
	struct free_object *one = object;

	slab.nr_objects--;
	if (bytes >= PAGE_SIZE) {
		slab.nr_pages -= bytes >> PAGE_SHIFT;
		set_page_private(page, 0);
		__free_pages(page, ilog2(bytes) - PAGE_SHIFT);
		return;
	}
	one->next = free_objects[ilog2(bytes)];
	free_objects[ilog2(bytes)] = one;
}

/* An object is aligned to its size. */
void remap_free_around(void *within)
{
	give((void *)ALIGN_DOWN((unsigned long)within, page_private(virt_to_page(within))));
}

void *__kmalloc_noprof(size_t size, gfp_t flags)
{
	HOST_STUB("custom");
	return take(size, flags);
}

void *__kmalloc_node_noprof(DECL_BUCKET_PARAMS(size, b), gfp_t flags, int node)
{
	HOST_STUB("custom");
	return take(size, flags);
}

void *__kmalloc_cache_noprof(struct kmem_cache *cache, gfp_t flags, size_t size)
{
	HOST_STUB("custom");
	return take(size, flags);
}

void *__kmalloc_cache_node_noprof(struct kmem_cache *cache, gfp_t flags, int node, size_t size)
{
	HOST_STUB("custom");
	return take(size, flags);
}

void kfree(const void *object)
{
	HOST_STUB("custom");
	if (object)
		give((void *)object);
}

/* As the constructor of that cache leaves it: lib/radix-tree.c. */
void *kmem_cache_alloc_lru_noprof(struct kmem_cache *cache, struct list_lru *lru, gfp_t flags)
{
	struct xa_node *node = take(sizeof(*node), flags | __GFP_ZERO);

	HOST_STUB("custom");
	if (node)
		INIT_LIST_HEAD(&node->private_list);
	return node;
}

void kmem_cache_free(struct kmem_cache *cache, void *object)
{
	HOST_STUB("custom");
	give(object);
}

/* It has been since the boot. */
bool slab_is_available(void)
{
	HOST_STUB("stubbed");
	return true;
}
