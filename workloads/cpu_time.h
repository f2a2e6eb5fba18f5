/* SPDX-License-Identifier: GPL-2.0-only */
/* How much of the CPUs an operation takes, in this process or in others. */
#ifndef REAM_CPU_TIME_H
#define REAM_CPU_TIME_H

#include <stdbool.h>
#include <stdint.h>

/**
 * cpu_time_ns() - CPU time until now, to the nanosecond
 * @of_all: Of all processes there are, kernel threads among them; else of this
 *	one, in the kernel and outside of it.
 *
 * The time of an interrupt counts for the process that it interrupts. The time
 * of a process that ends is no longer in the sum, which may fall.
 *
 * Return: nanoseconds; 0 if it is not known.
 */
uint64_t cpu_time_ns(bool of_all);

#endif
