/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rounds of a row whose limit is a fill of the same bytes: every variant
 * and every kind of fill once in each, in an order drawn anew.
 */
#ifndef REAM_ROUNDS_H
#define REAM_ROUNDS_H

#include "launch.h"

/**
 * struct slot - what runs once in a round
 * @variant: Index of the kernel, if it is one.
 * @fill: The kind of fill; NULL = the variant.
 * @nr_threads: CPUs that it may use.
 */
struct slot {
	unsigned int variant;
	const struct fill_kind *fill;
	unsigned int nr_threads;
};

/**
 * struct rounds - a row, as far as its rounds go
 * @row: Its name.
 * @nr_rounds: How many.
 * @nr_threads: CPUs of a variant; fills run on one and on as many.
 * @limits: Whether fills are measured at all.
 * @arena: The memory measured in.
 * @map_bytes: How much of it a pre-state is about.
 * @pre_state: Set before every sample.
 * @fill: The bytes that a sample is about; of none no fill is measured.
 * @sample_variant: Measure one variant once, and print it. Returns false if
 *	memory was not what it must be; that has been said then.
 * @context: For it.
 */
struct rounds {
	const char *row;
	unsigned int nr_rounds;
	unsigned int nr_threads;
	bool limits;
	const struct arena *arena;
	size_t map_bytes;
	enum pre_state pre_state;
	struct fill_range fill;
	bool (*sample_variant)(const struct rounds *rounds, unsigned int round,
			       const struct slot *slot);
	const void *context;
};

/* All rounds of a row; false as soon as a sample is not verified. */
bool rounds_run(const struct rounds *rounds);

/* Bring the arena into the row's pre-state, unless it is known to be there. */
void rounds_set_pre_state(const struct rounds *rounds);

/* The arena has been written to: it is in no pre-state any more. */
void rounds_arena_written(void);

void rounds_print_sample(const struct rounds *rounds, unsigned int round,
			 const struct slot *slot, unsigned int nr_threads,
			 struct span span, bool verified);

#endif
