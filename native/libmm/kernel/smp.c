// SPDX-License-Identifier: GPL-2.0-only
/* CPUs. One runs at a time. A cross call moves the current task to the other CPU and back. */
#include <linux/cacheinfo.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/smp.h>
#include <linux/topology.h>
#include "hosted.h"
#include "trees.h"

struct cpumask __cpu_possible_mask, __cpu_online_mask, __cpu_present_mask;
struct cpumask __cpu_active_mask, __cpu_dying_mask;
atomic_t __num_online_cpus;
unsigned int nr_cpu_ids = 1;
#ifdef HAVE_NUM_POSSIBLE_CPUS
unsigned int __num_possible_cpus = 1;
#endif
int __boot_cpu_id;
unsigned long __per_cpu_offset[NR_CPUS];
DEFINE_PER_CPU_READ_MOSTLY(struct cpuinfo_x86, cpu_info);
DEFINE_PER_CPU(int, x86_cpu_to_node_map);

static struct cpumask node_masks[MOST_NODES];
#ifdef CONFIG_CPUMASK_OFFSTACK
cpumask_var_t node_to_cpumask_map[MAX_NUMNODES] = {
	&node_masks[0], &node_masks[1], &node_masks[2], &node_masks[3],
};
#else
cpumask_var_t node_to_cpumask_map[MAX_NUMNODES];
#endif

/* As in kernel/softirq.c, but no softirq is ever pending. */
void __local_bh_enable_ip(unsigned long ip, unsigned int count)
{
	HOST_STUB("duplicated");
	__preempt_count_sub(count);
}

/* --- calls to other CPUs ----------------------------------------------- */

int smp_call_function_single(int cpu, smp_call_func_t function, void *info, waits_t wait)
{
	int here = context_of(current)->cpu;

	HOST_STUB("custom");
	go_to_cpu(cpu);
	function(info);
	go_to_cpu(here);
	return 0;
}

void smp_call_function_many(const struct cpumask *mask, smp_call_func_t function, void *info,
			    bool wait)
{
	int here = context_of(current)->cpu, cpu;

	HOST_STUB("custom");
	for_each_cpu_and(cpu, mask, cpu_online_mask)
		if (cpu != here)
			smp_call_function_single(cpu, function, info, wait);
}

void smp_call_function(smp_call_func_t function, void *info, int wait)
{
	HOST_STUB("duplicated");
	smp_call_function_many(cpu_online_mask, function, info, wait);
}

void on_each_cpu_cond_mask(smp_cond_func_t wanted, smp_call_func_t function, void *info,
			   bool wait, const struct cpumask *mask)
{
	int cpu;

	HOST_STUB("custom");
	for_each_cpu_and(cpu, mask, cpu_online_mask)
		if (!wanted || wanted(cpu, info))
			smp_call_function_single(cpu, function, info, wait);
}

/* --- CPU hotplug states: all CPUs are online from the beginning -------- */

static int (*starts[CPUHP_ONLINE + 1])(unsigned int cpu, struct hlist_node *node);

int __cpuhp_setup_state(enum cpuhp_state state, const char *name, bool invoke,
			int (*start)(unsigned int cpu), int (*stop)(unsigned int cpu), bool multi)
{
	int cpu, error = 0;

	HOST_STUB("custom");
	if (multi) {
		/* A multi-instance callback is called later, once for each instance. */
		starts[state] = (void *)start;
		return 0;
	}
	for_each_online_cpu(cpu)
		if (invoke && start && !error)
			error = start(cpu);
	/* Only a caller that asks for a dynamic state gets its number. */
	return error ?: state == CPUHP_AP_ONLINE_DYN || state == CPUHP_BP_PREPARE_DYN ? state : 0;
}

int __cpuhp_state_add_instance_cpuslocked(enum cpuhp_state state, struct hlist_node *node,
					  bool invoke)
{
	int cpu, error = 0;

	HOST_STUB("custom");
	for_each_online_cpu(cpu)
		if (invoke && starts[state] && !error)
			error = starts[state](cpu, node);
	return error;
}

int __cpuhp_state_add_instance(enum cpuhp_state state, struct hlist_node *node, bool invoke)
{
	HOST_STUB("custom");
	return __cpuhp_state_add_instance_cpuslocked(state, node, invoke);
}

struct cpu_cacheinfo *get_cpu_cacheinfo(unsigned int cpu)
{
	static struct cpu_cacheinfo none;

	HOST_STUB("custom");
	return &none;
}
