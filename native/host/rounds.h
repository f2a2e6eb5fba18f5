/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rounds of a row: every variant and every limit once in each, in an order
 * drawn anew.
 */
#ifndef REAM_ROUNDS_H
#define REAM_ROUNDS_H

#include "launch.h"

#define MOST_SLOTS 64

struct rounds;

/**
 * struct slot - what runs once in a round
 * @subject: The variant's name, or the limit's.
 * @variant: Index of the kernel, if it is one.
 * @limit: What @sample is to run of a limit; NULL = it is the variant.
 * @nr_threads: CPUs that it may use.
 * @sample: Measure it once, and print it. Returns false if memory was not what
 *	it must be; that has been said then.
 */
struct slot {
	const char *subject;
	unsigned int variant;
	const void *limit;
	unsigned int nr_threads;
	bool (*sample)(struct rounds *rounds, const struct slot *slot);
};

/**
 * struct rounds - a row, as far as its rounds go
 * @row: Its name.
 * @nr_rounds: How many.
 * @nr_threads: CPUs of a variant; limits run on one and on as many.
 * @warms_up: Whether every variant runs once before the first sample that
 *	counts: its sample is printed only if it is wrong.
 * @nr_bytes: What a sample is about.
 * @context: The row, of each tree one after the other; see rounds_row().
 * @arena: The memory measured in, if rounds_set_pre_state() is used.
 * @map_bytes: How much of it a pre-state is about.
 * @pre_state: Set before every sample.
 * @fill: The bytes that rounds_add_fills() writes; of none no fill is measured.
 * @beside: Other numbers of the sample that is printed next, see struct sample.
 *
 * What follows belongs to rounds.c.
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
	bool is_evicted;	/* the arena is known to be in PRE_EVICTED */
	unsigned int nr_slots;
	struct slot slots[MOST_SLOTS];
};

/* The row as it is of a variant's tree; a limit does the first one's. */
static inline void *rounds_row(const struct rounds *rounds, const struct slot *slot)
{
	unsigned int tree = slot->limit ? 0 : launch.tree_of[slot->variant];

	return (char *)rounds->context + tree * row_layout.bytes;
}

/* A slot for every variant; before those of limits. */
void rounds_add_variants(struct rounds *rounds,
			 bool (*sample)(struct rounds *rounds, const struct slot *slot));

/* One for a limit on one CPU and, if there are more, one on @nr_threads of them. */
void rounds_add_limit(struct rounds *rounds, const char *name, const void *limit,
		      bool (*sample)(struct rounds *rounds, const struct slot *slot));

/* Those of all fills that this CPU has. */
void rounds_add_fills(struct rounds *rounds);

/* All rounds of a row; false as soon as a sample is not verified. */
bool rounds_run(struct rounds *rounds);

/* Bring the arena into the row's pre-state, unless it is known to be there. */
void rounds_set_pre_state(struct rounds *rounds);

/* The arena has been written to: it is in no pre-state any more. */
void rounds_arena_written(struct rounds *rounds);

/* Returns @verified. */
bool rounds_print_sample(const struct rounds *rounds, const struct slot *slot,
			 unsigned int nr_threads, struct span span, bool verified);

#endif
