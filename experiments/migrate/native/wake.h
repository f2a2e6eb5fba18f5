/* SPDX-License-Identifier: GPL-2.0-only */
/* What it takes to sleep until a device is done, and to wake up. */
#ifndef REAM_MIGRATE_WAKE_H
#define REAM_MIGRATE_WAKE_H

/**
 * wake_measure_ns() - how much later than asked for this thread wakes up
 *
 * The model of an engine has no interrupt: a waiter sleeps until it is done.
 * From now on the host may not delay that on purpose (timer slack). The result
 * is the median of many sleeps.
 *
 * Return: nanoseconds, 1 at least.
 */
unsigned long wake_measure_ns(void);

#endif
