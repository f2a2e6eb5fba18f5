/* SPDX-License-Identifier: GPL-2.0-only */
/* The names that the linker's --wrap gives a function and what replaces it. */
#ifndef REAM_WRONG_COMPACT_H
#define REAM_WRONG_COMPACT_H

#include <sys/types.h>
#include "../../../../workloads/counters.h"
#include "../../workloads/faults.h"
#include "../../workloads/holes.h"

struct fault __real_fault_block(char *block);
struct holes_finding __real_holes_verify(const struct holes *holes);
unsigned long __real_counters_grown(const char *name,
				    const struct counters *before,
				    const struct counters *after);
ssize_t __real_pread(int fd, void *text, size_t room, off_t from);

struct fault __wrap_fault_block(char *block);
struct holes_finding __wrap_holes_verify(const struct holes *holes);
unsigned long __wrap_counters_grown(const char *name,
				    const struct counters *before,
				    const struct counters *after);
ssize_t __wrap_pread(int fd, void *text, size_t room, off_t from);

#endif
