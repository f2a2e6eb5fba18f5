/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of migrate_soak offer each other. */
#ifndef REAM_SOAK_H
#define REAM_SOAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_WORKERS 16

struct totals {
	unsigned long bytes;	/* that came to another node, and were compared */
	unsigned long moves;
	unsigned long forks;
	unsigned long writes;	/* of pages, meanwhile */
};

/* The next number of a sequence below @limit. */
unsigned long below(uint64_t *chance, unsigned long limit);

/* soak_worker.c: move memory and write it until killed, or until it is wrong */
_Noreturn void work(unsigned long number, uint64_t seed, struct totals *totals);

/* soak_kernel.c: the kernel's settings and modules */

#define NR_FAULTS 5

extern const struct fault {
	const char *name;	/* swdma's parameter */
	bool counted;		/* in its parameter "faults" */
} faults[NR_FAULTS];

/* Whether there is a DMA engine, and a driver that copies by it. */
bool has_engine(void);

/* Load both, if they are not; copy by it on several channels. */
void use_engine(uint64_t *chance);

void begin_fault(size_t kind, unsigned int k);

/* No faults any more; channels that are gone are asked for again. */
void end_fault(size_t kind);

unsigned long read_parameter(const char *module, const char *name);

/* Make one random change of those that are allowed at any time. */
void change_something(uint64_t *chance);

/* Nobody copies any more but the kernel; all modules are unloaded. */
void leave_off(void);

/* By dcbm or mtcopy, up to when it was unloaded last. */
unsigned long nr_folios_copied(const char *provider);

#endif
