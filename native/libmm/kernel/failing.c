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
static bool is_entered;

long step_fail(long nr)
{
	if (nr <= 0)
		return -EINVAL;
	next_fails = nr;
	return 0;
}

void begin_failing(void)
{
	fails = next_fails;
	next_fails = 0;
}

void may_fail(bool may)
{
	is_entered = may;
}

/* What our own steps allocate does not fail, nor does what must not. */
static bool must_fail(gfp_t gfp)
{
	return is_entered && fails && !(gfp & __GFP_NOFAIL) && !--fails;
}

/*
 * FAILING(name, flags): the flags are an argument of the allocator. All are
 * called alike, with as many arguments as any has in any kernel: what one does
 * not take is in registers that it does not read.
 */
#define FAILING(name_, gfp_)							\
	void *__real_##name_(long a, long b, long c, long d, long e);		\
	void *__wrap_##name_(long a, long b, long c, long d, long e)		\
	{									\
		HOST_STUB("custom");						\
		return must_fail((gfp_t)gfp_) ? NULL : __real_##name_(a, b, c, d, e);	\
	}

FAILING(__alloc_pages_noprof, a)
FAILING(__folio_alloc_noprof, a)
FAILING(kmem_cache_alloc_noprof, b)
FAILING(kmem_cache_alloc_lru_noprof, c)
FAILING(kmem_cache_alloc_bulk_noprof, b)
FAILING(__kmalloc_cache_noprof, b)
