// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the mremap experiment: functions that do nothing, and where that is
 * right.
 */
#include <linux/mm.h>
#include <linux/vmstat.h>
#include "kernel.h"

/* Statistics of a node whose other pages do not exist: of page tables. */
void mod_node_page_state(struct pglist_data *node, enum node_stat_item item,
			 long delta)
{
}

void __mod_node_page_state(struct pglist_data *node, enum node_stat_item item,
			   long delta)
{
}
