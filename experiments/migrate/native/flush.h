/* SPDX-License-Identifier: GPL-2.0-only */
/* What it takes to make another CPU forget a translation. */
#ifndef REAM_MIGRATE_FLUSH_H
#define REAM_MIGRATE_FLUSH_H

/**
 * flush_measure_ns() - how much longer mprotect() takes when two CPUs run us
 *
 * The difference is the interrupt that the other CPU gets, and the wait for
 * its answer. Of several measurements the middle one is taken.
 *
 * Return: nanoseconds; 0 if there is one CPU, or no difference.
 */
unsigned long flush_measure_ns(void);

/* Ticks of the time stamp counter in as many nanoseconds. */
unsigned long flush_ticks(unsigned long ns);

#endif
