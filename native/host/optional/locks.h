/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel that has ream/locks.o. */
#ifndef REAM_LOCKS_H
#define REAM_LOCKS_H

#include <linux/percpu.h>
#include <linux/spinlock_types.h>
#include <linux/types.h>

/* Set by glue.c if CPUs share real ones, so that the holder of a lock may not be running. */
extern bool host_shares_cpus;

/*
 * Called for each lock that is taken, unless NULL. @interrupts_off is whether
 * interrupts would be off on this CPU of a kernel by now.
 */
extern void (*host_lock_taken)(const raw_spinlock_t *lock, bool interrupts_off);

/* The same state for each CPU. It is updated only while host_lock_taken is set. */
DECLARE_PER_CPU(bool, host_interrupts_off);

#endif
