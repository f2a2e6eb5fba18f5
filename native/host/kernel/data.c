// SPDX-License-Identifier: GPL-2.0-only
/*
 * Variables of the kernel that hosted code reads, each with the value it needs.
 *
 * A missing variable does not read as zero: an access ends the program with its
 * name (lab/ream/stage/link.py), because a silent zero would be a wrong kernel.
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched/sysctl.h>
#include <linux/workqueue.h>
#include "kernel.h"

/* It comes first in the variant's writable section and aligns it: see variant.lds. */
static const char first_datum[0] __used __aligned(PAGE_SIZE)
	__section(".data..ream_first");

/* No hosted path measures time by jiffies. A printed duration is 0. */
u64 jiffies_64 __cacheline_aligned_in_smp = INITIAL_JIFFIES;

/* The experiment adds the sections. Weak, because mm/sparse.o may be linked, too. */
struct mem_section **mem_section __weak;

/* Two nodes: that of the device, and another one for the CPUs if that has none. */
static struct pglist_data nodes[2] = {
	{ .node_id = 0 },
	{ .node_id = 1 },
};

struct pglist_data *node_data[MAX_NUMNODES] = { &nodes[0], &nodes[1] };
#ifdef CONFIG_CPUMASK_OFFSTACK
static struct cpumask node_masks[2];

cpumask_var_t node_to_cpumask_map[MAX_NUMNODES] = { &node_masks[0], &node_masks[1] };
#else
cpumask_var_t node_to_cpumask_map[MAX_NUMNODES];
#endif

/* From kernel/cpu.c. boot() sets a bit for each CPU of the machine. */
struct cpumask __cpu_possible_mask;
struct cpumask __cpu_online_mask;
struct cpumask __cpu_present_mask;
#ifdef HAVE_NUM_POSSIBLE_CPUS
unsigned int __num_possible_cpus __ro_after_init = 1;
#endif
#if !defined(FORCE_NR_CPUS)
unsigned int nr_cpu_ids = 1;
#endif

/* Weak, because mm/page_alloc.o, which defines it, may be linked, too. */
nodemask_t node_states[NR_NODE_STATES] __weak;

#ifdef CONFIG_NUMA_BALANCING
/* From kernel/sched/core.c. Most machines have this mode, in which tiers do not matter. */
int sysctl_numa_balancing_mode = NUMA_BALANCING_NORMAL;
#endif

/* custom.c submits all works to one pool, so workqueues have no state. */
struct workqueue_struct *system_unbound_wq;
struct workqueue_struct *system_wq;
struct workqueue_struct *system_dfl_wq;
struct workqueue_struct *system_percpu_wq;

/* Offsets of the per-CPU areas, of which each thread has one. */
unsigned long __per_cpu_offset[NR_CPUS];

/* The kernel's linker script makes this alias, arch/x86/kernel/vmlinux.lds.S. */
asm(".globl jiffies\n.set jiffies, jiffies_64");

/**
 * host_node() - get a node that an experiment may fill
 * @nid: Node 0 or 1.
 */
struct pglist_data *host_node(int nid)
{
	return &nodes[nid];
}

/**
 * host_set_node_cpus() - assign CPUs to a node
 * @nid: Node 0 or 1.
 * @nr_cpus: Number of CPUs, from CPU 0 on, that belong to this node. The other
 *	node then has none. 0 assigns all CPUs to the other node.
 */
void host_set_node_cpus(int nid, unsigned int nr_cpus)
{
	int owner = nr_cpus ? nid : !nid;

	host_give_cpus(owner, 0, nr_cpus ?: num_possible_cpus());
	host_give_cpus(!owner, 0, 0);
}

/**
 * host_give_cpus() - assign a range of CPUs to a node
 * @nid: Node 0 or 1.
 * @first: The first CPU.
 * @nr: Number of CPUs; may be 0.
 */
void host_give_cpus(int nid, unsigned int first, unsigned int nr)
{
	unsigned int cpu;

	cpumask_clear(node_to_cpumask_map[nid]);
	for (cpu = first; cpu < first + nr; cpu++)
		cpumask_set_cpu(cpu, node_to_cpumask_map[nid]);
	if (nr)
		node_set(nid, node_states[N_CPU]);
	else
		node_clear(nid, node_states[N_CPU]);
}

/**
 * host_add_sections() - make sections as sparse_add_section() leaves them
 * @start_pfn: A frame in the first section.
 * @nr_pages: Number of frames up to the end of the last section.
 * @usage: Memory for the usage maps of all sections.
 * @early_pages: Number of frames, from the first on, whose sections are early.
 * @old_blocks: Value of each byte of their pageblock flags.
 */
void host_add_sections(unsigned long start_pfn, unsigned long nr_pages,
		       void *usage, unsigned long early_pages,
		       unsigned char old_blocks)
{
	unsigned long first = pfn_to_section_nr(start_pfn);
	unsigned long last = pfn_to_section_nr(start_pfn + nr_pages - 1);
	size_t usage_bytes = sizeof(struct mem_section_usage) +
			     SECTION_BLOCKFLAGS_BITS / BITS_PER_BYTE;
	unsigned long nr;

	if (!mem_section)
		mem_section = host_alloc(NR_SECTION_ROOTS * sizeof(*mem_section));
	for (nr = first; nr <= last; nr++) {
		struct mem_section **root = &mem_section[SECTION_NR_TO_ROOT(nr)];
		struct mem_section *section;

		if (!*root)
			*root = host_alloc(PAGE_SIZE);
		section = &(*root)[nr & SECTION_ROOT_MASK];
		section->section_mem_map = SECTION_HAS_MEM_MAP |
					   SECTION_MARKED_PRESENT;
		if (early_pages &&
		    section_nr_to_pfn(nr) < start_pfn + early_pages)
			section->section_mem_map |= SECTION_IS_EARLY;
		section->usage = usage + (nr - first) * usage_bytes;
		memset(section->usage->pageblock_flags, old_blocks,
		       SECTION_BLOCKFLAGS_BITS / BITS_PER_BYTE);
	}
}
