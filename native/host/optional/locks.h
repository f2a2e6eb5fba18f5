/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel that has ream/locks.o. */
#ifndef REAM_LOCKS_H
#define REAM_LOCKS_H

#include <linux/percpu.h>
#include <linux/spinlock_types.h>
#include <linux/types.h>

/* Set by glue.c: CPUs share real ones, so a lock's holder may not be running. */
extern bool host_shares_cpus;

/*
 * Whoever wants to see each lock that is taken, or NULL. @interrupts_off:
 * whether this CPU of a kernel would have interrupts off by now.
 */
extern void (*host_lock_taken)(const raw_spinlock_t *lock, bool interrupts_off);

/* That, on each CPU; kept only while somebody wants to see. */
DECLARE_PER_CPU(bool, host_interrupts_off);

#endif
