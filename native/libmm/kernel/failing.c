// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocations that fail when a program asks for it. The linker has calls of the
 * kernel's allocators from its other objects come here first. Memory is there,
 * so what the kernel does then is what it does when there is none, and no more.
 */
#include <linux/gfp.h>
#include <linux/slab.h>
#include "hosted.h"
#include "steps.h"

static unsigned long next_fails, fails;	/* so many allocations from now on; 0: none does */
static long next_order, least_order;	/* of these; not 0: all later ones fail, too */
static long next_times, times;		/* so many in a row fail */
static bool is_entered;

long step_fail(long nr, long order, long nr_times)
{
	if (nr <= 0 || order < 0 || nr_times <= 0)
		return -EINVAL;
	next_fails = nr;
	next_order = order;
	next_times = nr_times;
	return 0;
}

void begin_failing(void)
{
	fails = next_fails;
	least_order = next_order;
	times = next_times;
	next_fails = 0;
}

void may_fail(bool may)
{
	is_entered = may;
}

bool fails_for_ever(void)
{
	return fails && least_order;
}

bool is_in_kernel(void)
{
	return is_entered;
}

/* What our own steps allocate does not fail, nor does what must not. */
static bool must_fail(gfp_t gfp, long order)
{
	if (gfp & __GFP_DIRECT_RECLAIM)
		may_interrupt();
	if (!is_entered || !fails || gfp & __GFP_NOFAIL || order < least_order)
		return false;
	if (fails > 1) {
		fails--;
		return false;
	}
	fails = least_order > 0 || --times > 0;
	return true;
}

/*
 * FAILING(name, flags, order): these are arguments of the allocator. All are
 * called alike, with as many arguments as any has in any kernel: what one does
 * not take is in registers that it does not read.
 */
#define FAILING(name_, gfp_, order_)						\
	void *__real_##name_(long a, long b, long c, long d, long e);		\
	void *__wrap_##name_(long a, long b, long c, long d, long e)		\
	{									\
		HOST_STUB("custom");						\
		return must_fail((gfp_t)gfp_, order_) ? NULL :			\
		       __real_##name_(a, b, c, d, e);				\
	}

FAILING(__alloc_pages_noprof, a, b)
FAILING(__alloc_frozen_pages_noprof, a, b)	/* of newer kernels */
FAILING(__folio_alloc_noprof, a, b)
FAILING(kmem_cache_alloc_noprof, b, 0)
FAILING(kmem_cache_alloc_lru_noprof, c, 0)
FAILING(kmem_cache_alloc_bulk_noprof, b, 0)
FAILING(__kmalloc_cache_noprof, b, 0)
