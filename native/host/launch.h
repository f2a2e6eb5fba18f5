/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One launch of any experiment: its command line, its kernels, and the lines
 * of JSON it prints. What is measured is the experiment's own.
 */
#ifndef REAM_LAUNCH_H
#define REAM_LAUNCH_H

#include "program.h"

#define MOST_VARIANTS 32	/* plan.py makes several programs of more */

/**
 * struct launch - what every part of a launch may read
 * @number: The launch's, for the record.
 * @nr_cpus: Real CPUs in use.
 * @nr_hosted_cpus: CPUs that run kernel code; more than real ones share those.
 * @nr_variants: Kernels linked into this program.
 * @variant_names: In link order.
 * @huge_ratio: How much of the memory measured in lay in huge pages.
 * @seed: State of the generator that orders rounds.
 */
struct launch {
	unsigned int number;
	unsigned int nr_cpus;
	unsigned int nr_hosted_cpus;
	unsigned int nr_variants;
	char *variant_names[MOST_VARIANTS];
	double huge_ratio;
	uint64_t seed;
};

extern struct launch launch;

/**
 * struct experiment - what a runner adds to a launch
 * @name: As `ream run` has it.
 * @addresses: Where it puts what descriptors point to, for the oracle; ended
 *	by a NULL name.
 * @prepare: Map memory before any kernel is booted.
 * @run: Do what the plan says. Returns false if a sample was not what it
 *	must be; that has been said then.
 */
struct experiment {
	const char *name;
	const struct host_fact *addresses;
	void (*prepare)(void);
	bool (*run)(const char *plan_path);
};

/* A runner's whole main(). */
int launch_main(int argc, char **argv, const struct experiment *experiment);

/* The experiment's operations of one variant's kernel. */
static inline const void *launch_ops(unsigned int variant)
{
	return __start_ream_kernels[variant]->ops;
}

/**
 * struct sample - one measured value, as the record has it
 * @row: The row's name.
 * @round: Within this launch.
 * @is_limit: A bound of the hardware's, not a variant.
 * @subject: The variant's name, or the bound's.
 * @nr_threads: CPUs that took part.
 * @time_ns: How long it took.
 * @nr_bytes: Bytes of memory it was about.
 * @verified: Whether memory holds what it must.
 */
struct sample {
	const char *row;
	unsigned int round;
	bool is_limit;
	const char *subject;
	unsigned int nr_threads;
	uint64_t time_ns;
	size_t nr_bytes;
	bool verified;
};

void launch_print_sample(const struct sample *sample);

/* Whether an earlier start of this launch has done this round of a row. */
bool launch_has_done(const char *row, unsigned int round);

/* Every sample of this round is out, and the stubs that were reached by now. */
void launch_end_round(const char *row, unsigned int round);

/* Have a number of the whole launch told at its end; @name has to last. */
void launch_tell(const char *name, unsigned long value);

/* Memory at a fixed address, small enough not to care for its pages' size. */
void *launch_map_small(uintptr_t address, size_t bytes);

#endif
