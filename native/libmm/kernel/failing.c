// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocations that fail when a program asks for it. The linker redirects calls
 * of the allocators to the wrappers here (ld --wrap). Only the failure itself is
 * injected: there is no reclaim, since memory is not actually short.
 */
#include <linux/gfp.h>
#include <linux/slab.h>
#include "hosted.h"
#include "steps.h"

static unsigned long next_fails, fails;	/* the Nth allocation from now fails; 0: none */
static long next_order, least_order;	/* count from this order on; if not 0, fail all later */
static long next_times, times;		/* how many fail in a row */
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

/* Allocations by the steps themselves never fail, nor do those with __GFP_NOFAIL. */
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
 * FAILING(name, flags, order): flags and order name arguments of the allocator.
 * All wrappers pass five arguments, which is the most that any allocator has in
 * any kernel. An allocator ignores the registers beyond its own arguments.
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
