// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the deferred-init experiment: the kernel's variables that it reads, each
 * with the value it needs. See native/host/kernel/data.c.
 */
#include <linux/memory_hotplug.h>
#include "kernel.h"

/* Nobody said movable_node, so memory that may go is not set apart. */
bool movable_node_enabled;
