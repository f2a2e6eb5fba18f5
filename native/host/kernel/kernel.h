/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside a hosted kernel: declarations of its substitute functions.
 *
 * They are split by honesty, one file for each kind:
 *   duplicated.c  means the same as the kernel's own;
 *   stubbed.c     does nothing, which is correct here;
 *   custom.c      differs deliberately, and a comment says how.
 * Symbols in none of them stay undefined: see lab/ream/stage/link.py.
 */
#ifndef REAM_KERNEL_H
#define REAM_KERNEL_H

#include <linux/atomic.h>
#include <linux/mmzone.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <asm/current.h>
#include "host.h"
#include "machine.h"

/*
 * Count the calls of the enclosing function, per CPU, by one instruction without
 * a lock prefix. The program adds the counts up at the end.
 */
#define HOST_STUB(honesty_)						\
	do {								\
		static __PCPU_ATTRS("") unsigned long nr_calls;		\
		static struct host_stub stub = {			\
			.name = __func__, .honesty = (honesty_),	\
			.nr_calls = (unsigned long __force *)&nr_calls,	\
		};							\
		static struct host_stub *const entry __used		\
			__section("ream_stubs") = &stub;		\
		raw_cpu_inc(nr_calls);					\
	} while (0)

/* The experiment's glue defines these. */
extern const void *const host_experiment_ops;
extern const struct host_fact host_experiment_facts[];

/* The linker collects these pointers. See variant.lds. */
extern struct host_stub *const host_stubs[];

extern const struct bug_entry host_bug_table[], host_bug_table_end[];

/* struct host_bugs of this kernel. */
#define HOST_BUGS {							\
	.first = host_bug_table,					\
	.end = host_bug_table_end,					\
	.entry_bytes = sizeof(struct bug_entry),			\
	.file_at = offsetof(struct bug_entry, file_disp),		\
	.line_at = offsetof(struct bug_entry, line),			\
	.flags_at = offsetof(struct bug_entry, flags),			\
}

struct pglist_data *host_node(int nid);
void host_set_node_cpus(int nid, unsigned int nr_cpus);
void host_give_cpus(int nid, unsigned int first, unsigned int nr);
void host_add_sections(unsigned long start_pfn, unsigned long nr_pages,
		       void *usage, unsigned long early_pages,
		       unsigned char old_blocks);

#define NR_ZONE_AREAS 2

/* Describe a zone and its node, to be compared with @expected, a copy of the node. */
static inline void host_zone_areas(struct host_area *areas, const struct zone *zone,
				   const struct pglist_data *expected,
				   const struct host_fact *fields)
{
	/* Use the node ID of the copy, since that of the zone may be wrong. */
	const struct pglist_data *pgdat = host_node(expected->node_id);

	areas[0] = (struct host_area){
		"zone", zone, &expected->node_zones[zone - pgdat->node_zones],
		sizeof(*zone), fields,
	};
	areas[1] = (struct host_area){
		"pglist_data", pgdat, expected, sizeof(*pgdat), fields,
	};
}

#endif
