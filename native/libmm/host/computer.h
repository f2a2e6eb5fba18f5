/* SPDX-License-Identifier: GPL-2.0-only */
/* The program around a hosted mm: what its files offer each other. */
#ifndef REAM_COMPUTER_H
#define REAM_COMPUTER_H

#include "libmm.h"
#include "program.h"

/* Of the linker: where code and data lie. */
extern char __executable_start[], etext[], __data_start[], _end[];

/* stacks.c: what a new stack returns to. */
extern const char stack_begins[];

/* What the hosted kernel offers us; there is one in a program. */
static inline const struct libmm_kernel *libmm_kernel(void)
{
	return (*__start_ream_kernels)->ops;
}

/*
 * memory.c: reserve what has a fixed place; @fd: the file that is RAM; negative: a new one;
 * @measures: a step is timed, so that pages are those that README.md describes.
 */
void memory_prepare(int fd, bool measures);

/* Static keys, calls and constants change the kernel's code at any time from now on. */
void memory_open_text(void);

/* Map @bytes at a fixed place, or end the run. */
void memory_map(unsigned long address, unsigned long bytes, int protection, int flags, int fd,
		unsigned long offset);

/* traps.c: turn faults into lines of the report; @forbidden_path as for traps_install(). */
void traps_prepare(const char *forbidden_path);

/* What may pass from now on until the run says something, in seconds; 0: no end. */
void traps_set_patience(unsigned int seconds);

#endif
