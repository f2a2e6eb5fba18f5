/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside a hosted kernel: how its substitutes declare themselves.
 *
 * They are split by honesty, one file each:
 *   duplicated.c  same meaning as the kernel's own;
 *   stubbed.c     does nothing, and that is right here;
 *   custom.c      deliberately different, and each says how.
 * A symbol in none of them is not defined at all: see stage/link.py.
 */
#ifndef REAM_KERNEL_H
#define REAM_KERNEL_H

#include <linux/atomic.h>
#include <linux/mmzone.h>
#include "host.h"

/*
 * Counts the calls of the function it stands in. The counter is shared by all
 * threads; nothing that is called once per page may use it.
 */
#define HOST_STUB(honesty_)						\
	do {								\
		static struct host_stub stub = {			\
			.name = __func__, .honesty = (honesty_),	\
		};							\
		static struct host_stub *const entry __used		\
			__section("ream_stubs") = &stub;		\
		arch_atomic64_inc((atomic64_t *)&stub.nr_calls);	\
	} while (0)

/* The experiment's glue defines these. */
extern const void *const host_experiment_ops;
extern const struct host_fact host_experiment_facts[];

/* The linker gathers the stubs here. See variant.lds. */
extern struct host_stub *const host_stubs[];

struct pglist_data *host_node(int nid);
void host_set_node_cpus(int nid, unsigned int nr_cpus);

#endif
