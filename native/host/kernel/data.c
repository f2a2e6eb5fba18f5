// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's variables that hosted code reads, each with the value it needs.
 *
 * A variable that is missing here is not zero: touching it ends the program
 * with its name (stage/link.py), because a silent zero is a wrong kernel.
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/workqueue.h>
#include <asm/processor.h>
#include "kernel.h"

/* First in the variant's writable section and aligns it: see variant.lds. */
static const char first_datum[0] __used __aligned(PAGE_SIZE)
	__section(".data..ream_first");

/* Set per experiment: where the map lies. arch/x86/kernel/head64.c */
unsigned long vmemmap_base;

/* No hosted path reads time from it; a printed duration is 0. */
u64 jiffies_64 __cacheline_aligned_in_smp = INITIAL_JIFFIES;

/* Filled by boot() in custom.c from CPUID. arch/x86/kernel/setup.c */
struct cpuinfo_x86 boot_cpu_data;

/* No node has sections until the experiment adds them. mm/sparse.c */
struct mem_section **mem_section;

/* Two nodes: the one of the device and, where that has no CPUs, another. */
static struct pglist_data nodes[2] = {
	{ .node_id = 0 },
	{ .node_id = 1 },
};

struct pglist_data *node_data[MAX_NUMNODES] = { &nodes[0], &nodes[1] };
cpumask_var_t node_to_cpumask_map[MAX_NUMNODES];

/* boot() sets as many bits as the machine lends us CPUs. kernel/cpu.c */
struct cpumask __cpu_possible_mask;
struct cpumask __cpu_online_mask;
struct cpumask __cpu_present_mask;
#if !defined(FORCE_NR_CPUS)
unsigned int nr_cpu_ids = 1;
#endif

/* custom.c hands all work to one pool, so no queue has state. */
struct workqueue_struct *system_unbound_wq;
struct workqueue_struct *system_wq;

/* The per-CPU area: one copy per thread, reached through its GS base. */
DEFINE_PER_CPU_READ_MOSTLY(unsigned long, this_cpu_off);
DEFINE_PER_CPU_ALIGNED(struct pcpu_hot, pcpu_hot);
unsigned long __per_cpu_offset[NR_CPUS];

/* The kernel's linker script makes these aliases. arch/x86/kernel/vmlinux.lds.S */
asm(".globl const_pcpu_hot\n.set const_pcpu_hot, pcpu_hot");
asm(".globl jiffies\n.set jiffies, jiffies_64");

/**
 * host_node() - the node an experiment may fill
 * @nid: 0 or 1.
 */
struct pglist_data *host_node(int nid)
{
	return &nodes[nid];
}

/**
 * host_set_node_cpus() - give a node its CPUs
 * @nid: 0 or 1.
 * @nr_cpus: The first that many CPUs are of this node, the other has none; 0
 *	gives all CPUs to the other node.
 */
void host_set_node_cpus(int nid, unsigned int nr_cpus)
{
	int owner = nr_cpus ? nid : !nid;
	unsigned int cpu, nr = nr_cpus ?: num_possible_cpus();

	cpumask_clear(node_to_cpumask_map[!owner]);
	cpumask_clear(node_to_cpumask_map[owner]);
	for (cpu = 0; cpu < nr; cpu++)
		cpumask_set_cpu(cpu, node_to_cpumask_map[owner]);
	nodes_clear(node_states[N_CPU]);
	node_set(owner, node_states[N_CPU]);
}
