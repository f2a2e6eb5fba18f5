/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rounds of a row. Each round runs every variant and every limit once, in a
 * new random order.
 */
#ifndef REAM_ROUNDS_H
#define REAM_ROUNDS_H

#include "launch.h"

#define MOST_SLOTS 64

struct rounds;

/**
 * struct slot - a variant or limit, which runs once in a round
 * @subject: Name of the variant or limit.
 * @variant: Index of the kernel, for a variant.
 * @limit: Data of @sample for a limit. NULL for a variant.
 * @nr_threads: Number of CPUs that it may use.
 * @sample: Take one sample and print it. Returns false if memory was wrong, and
 *	has reported it then.
 */
struct slot {
	const char *subject;
	unsigned int variant;
	const void *limit;
	unsigned int nr_threads;
	bool (*sample)(struct rounds *rounds, const struct slot *slot);
};

/**
 * struct rounds - the rounds of one row
 * @row: Name of the row.
 * @nr_rounds: Number of rounds.
 * @nr_threads: CPUs of a variant. Limits run on one CPU and on this many.
 * @warms_up: Whether every variant runs once before the first sample that
 *	counts. The sample of such a run is printed only if it is wrong.
 * @nr_bytes: Number of bytes that a sample processes.
 * @context: The row of each tree, one after the other; see rounds_row().
 * @arena: Memory measured in, if rounds_set_pre_state() is used.
 * @map_bytes: Size of the part of @arena that has a pre-state.
 * @pre_state: State of the arena before every sample.
 * @fill: The bytes that rounds_add_fills() writes. If empty, no fill is measured.
 * @beside: Other numbers of the sample that is printed next, see struct sample.
 *
 * The members after these are private to rounds.c.
 */
struct rounds {
	const char *row;
	unsigned int nr_rounds;
	unsigned int nr_threads;
	bool warms_up;
	size_t nr_bytes;
	void *context;
	const struct arena *arena;
	size_t map_bytes;
	enum pre_state pre_state;
	struct fill_range fill;
	const struct host_fact *beside;

	unsigned int round;
	bool is_evicted;	/* the arena is known to be in state PRE_EVICTED */
	unsigned int nr_slots;
	struct slot slots[MOST_SLOTS];
};

/* The row of a variant's tree. A limit uses the row of the first tree. */
static inline void *rounds_row(const struct rounds *rounds, const struct slot *slot)
{
	unsigned int tree = slot->limit ? 0 : launch.tree_of[slot->variant];

	return (char *)rounds->context + tree * row_layout.bytes;
}

/* Add a slot for every variant. Call it before slots of limits are added. */
void rounds_add_variants(struct rounds *rounds,
			 bool (*sample)(struct rounds *rounds, const struct slot *slot));

/* Add a slot for a limit on one CPU and, if there are more, one on all of @nr_threads. */
void rounds_add_limit(struct rounds *rounds, const char *name, const void *limit,
		      bool (*sample)(struct rounds *rounds, const struct slot *slot));

/* Add slots for all kinds of fills that this CPU supports. */
void rounds_add_fills(struct rounds *rounds);

/* Run all rounds of a row. Return: false as soon as a sample is not verified. */
bool rounds_run(struct rounds *rounds);

/* Bring the arena into the row's pre-state, unless it is known to be there. */
void rounds_set_pre_state(struct rounds *rounds);

/* Record that the arena was written to, so that it is in no pre-state any more. */
void rounds_arena_written(struct rounds *rounds);

/* Print a sample. Return: @verified. */
bool rounds_print_sample(const struct rounds *rounds, const struct slot *slot,
			 unsigned int nr_threads, struct span span, bool verified);

#endif
