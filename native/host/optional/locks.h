/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel that has ream/locks.o. */
#ifndef REAM_LOCKS_H
#define REAM_LOCKS_H

#include <linux/types.h>

/* Set by glue.c: CPUs share real ones, so a lock's holder may not be running. */
extern bool host_shares_cpus;

#endif
