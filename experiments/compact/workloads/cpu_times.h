/* SPDX-License-Identifier: GPL-2.0-only */
/* What all CPUs of the machine do, over all processes. */
#ifndef REAM_CPU_TIMES_H
#define REAM_CPU_TIMES_H

#include <stdint.h>

struct cpu_times {
	uint64_t user_ns;	/* with nice */
	uint64_t system_ns;	/* with interrupts */
	uint64_t idle_ns;	/* with waiting for input and output */
	uint64_t steal_ns;	/* that a host gave to others */
};

/* Read /proc/stat, which counts in hundredths of a second; exits without. */
struct cpu_times cpu_times_now(void);

/* Print as a JSON object by how much each has grown. */
void cpu_times_print(const struct cpu_times *before,
		     const struct cpu_times *after);

#endif
