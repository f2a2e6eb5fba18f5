/* SPDX-License-Identifier: GPL-2.0-only */
/* Interfaces between the files of the program around a hosted mm. */
#ifndef REAM_COMPUTER_H
#define REAM_COMPUTER_H

#include "libmm.h"
#include "program.h"

/* Linker symbols: the bounds of code and data. */
extern char __executable_start[], etext[], __data_start[], _end[];

/* stacks.c: the code that a new stack returns to first. */
extern const char stack_begins[];

/* Entry points of the hosted kernel. A program links exactly one. */
static inline const struct libmm_kernel *libmm_kernel(void)
{
	return (*__start_ream_kernels)->ops;
}

/*
 * memory.c: reserve the fixed address ranges. @fd is the file that backs RAM, or negative for
 * a new one. With @measures a step is timed, and page sizes are those that README.md gives.
 */
void memory_prepare(int fd, bool measures);

/* Make code writable: static keys, static calls and runtime constants patch it at any time. */
void memory_open_text(void);

/* Map @bytes at a fixed place, or end the run. */
void memory_map(unsigned long address, unsigned long bytes, int protection, int flags, int fd,
		unsigned long offset);

/* traps.c: turn faults into report lines. @forbidden_path is that of traps_install(). */
void traps_prepare(const char *forbidden_path);

/* End the run if it reports nothing for this many seconds. 0 means no limit. */
void traps_set_patience(unsigned int seconds);

#endif
