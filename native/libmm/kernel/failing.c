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
 * FAILING(name, parameters, arguments, flags): the parameters as the calling
 * convention has them, since their number differs between kernels.
 */
#define FAILING(name_, parameters_, arguments_, gfp_)				\
	void *__real_##name_ parameters_;					\
	void *__wrap_##name_ parameters_;					\
	void *__wrap_##name_ parameters_					\
	{									\
		HOST_STUB("custom");						\
		return must_fail(gfp_) ? NULL : __real_##name_ arguments_;	\
	}

FAILING(__alloc_pages_noprof, (gfp_t gfp, unsigned long order, long node, void *nodes, long flags),
	(gfp, order, node, nodes, flags), gfp)
FAILING(__folio_alloc_noprof, (gfp_t gfp, unsigned long order, long node, void *nodes),
	(gfp, order, node, nodes), gfp)
FAILING(kmem_cache_alloc_noprof, (void *cache, gfp_t gfp), (cache, gfp), gfp)
FAILING(kmem_cache_alloc_lru_noprof, (void *cache, void *lru, gfp_t gfp), (cache, lru, gfp), gfp)
FAILING(kmem_cache_alloc_bulk_noprof, (void *cache, gfp_t gfp, size_t nr, void **to),
	(cache, gfp, nr, to), gfp)
FAILING(__kmalloc_cache_noprof, (void *cache, gfp_t gfp, size_t bytes), (cache, gfp, bytes), gfp)
