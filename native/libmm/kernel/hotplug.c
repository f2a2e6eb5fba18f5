// SPDX-License-Identifier: GPL-2.0-only
/* Notifiers of memory hotplug, and the speed of each node's memory. */
#include <linux/memory.h>
#include <linux/memory-tiers.h>
#include <linux/node.h>
#include <linux/notifier.h>
#include "hosted.h"
#include "steps.h"

/* --- drivers/base/memory.c and drivers/base/node.c ---------------------- */

static BLOCKING_NOTIFIER_HEAD(of_memory);

int register_memory_notifier(struct notifier_block *block)
{
	HOST_STUB("duplicated");
	return blocking_notifier_chain_register(&of_memory, block);
}

#ifdef HAVE_MEMORY_BLOCK_STATE
#define action_t enum memory_block_state
#else
#define action_t unsigned long
#endif

int memory_notify(action_t action, void *about)
{
	HOST_STUB("duplicated");
	return blocking_notifier_call_chain(&of_memory, action, about);
}

static BLOCKING_NOTIFIER_HEAD(of_nodes);

int register_node_notifier(struct notifier_block *block)
{
	HOST_STUB("duplicated");
	return blocking_notifier_chain_register(&of_nodes, block);
}

int node_notify(unsigned long action, void *about)
{
	HOST_STUB("duplicated");
	return blocking_notifier_call_chain(&of_nodes, action, about);
}

/* --- abstract distance of memory, as firmware reports it ---------------- */

static unsigned long slow_nodes;

long step_slow(long nodes)
{
	if (system_state != SYSTEM_RUNNING)
		slow_nodes = nodes;
	return 0;
}

static int say_distance(struct notifier_block *block, unsigned long node, void *distance)
{
	if (!(slow_nodes & 1UL << node))
		return NOTIFY_OK;
	*(int *)distance = 2 * MEMTIER_ADISTANCE_DRAM;
	return NOTIFY_STOP;
}

static struct notifier_block firmware = { .notifier_call = say_distance };

void say_distances(void)
{
	if (slow_nodes)
		register_mt_adistance_algorithm(&firmware);
}
