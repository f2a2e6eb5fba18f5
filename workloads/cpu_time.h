/* SPDX-License-Identifier: GPL-2.0-only */
/* CPU time that an operation takes, whichever process or thread spends it. */
#ifndef REAM_CPU_TIME_H
#define REAM_CPU_TIME_H

#include <stdbool.h>
#include <stdint.h>

/**
 * cpu_time_ns() - CPU time until now, to the nanosecond
 * @of_all: Count all processes, kernel threads included. Otherwise count only
 *	this process, in user and kernel mode.
 *
 * An interrupt counts for the process that it interrupts. The time of a process
 * that exits is lost, so the sum may decrease.
 *
 * Return: nanoseconds, or 0 if the time is not known.
 */
uint64_t cpu_time_ns(bool of_all);

#endif
