/* SPDX-License-Identifier: GPL-2.0-only */
/* NUMA nodes, as sysfs shows them. */
#ifndef REAM_NODES_H
#define REAM_NODES_H

#include <stdbool.h>
#include <stddef.h>

#define MOST_NODES 64U	/* of one word of a mask */

/* Exit with EXIT_CANNOT_RUN unless both nodes are there and have memory. */
void nodes_require(unsigned int from, unsigned int to);

/* The first CPU of a node; -1 if it has none. */
int node_cpu(unsigned int node);

/* Memory of a node that is free now; 0 if that is not known. */
size_t node_free_bytes(unsigned int node);

/* What the kernel keeps free of a node: with less, it begins to reclaim. */
size_t node_reserve_bytes(unsigned int node);

/* Whether @low is in a memory tier below that of @high. */
bool node_is_lower(unsigned int low, unsigned int high);

#endif
