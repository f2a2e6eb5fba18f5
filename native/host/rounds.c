// SPDX-License-Identifier: GPL-2.0-only
/* The rounds of a row: variants and fills in turn, in random order. */
#include "rounds.h"

#define MOST_SLOTS 64

static bool is_evicted;	/* the arena is known to be in PRE_EVICTED */

void rounds_set_pre_state(const struct rounds *rounds)
{
	if (rounds->pre_state == PRE_EVICTED && is_evicted)
		return;
	arena_set_pre_state(rounds->arena, rounds->map_bytes, rounds->pre_state,
			    launch.nr_cpus);
	is_evicted = rounds->pre_state == PRE_EVICTED;
}

void rounds_arena_written(void)
{
	is_evicted = false;
}

static const char *subject_of(const struct slot *slot)
{
	return slot->fill ? slot->fill->name : launch.variant_names[slot->variant];
}

void rounds_print_sample(const struct rounds *rounds, unsigned int round,
			 const struct slot *slot, unsigned int nr_threads,
			 struct span span, bool verified)
{
	const struct sample sample = {
		.row = rounds->row,
		.round = round,
		.is_limit = slot->fill,
		.subject = subject_of(slot),
		.nr_threads = nr_threads,
		.span = span,
		.nr_bytes = rounds->fill.block_bytes * rounds->fill.nr_blocks,
		.verified = verified,
	};

	launch_print_sample(&sample);
}

static void sample_fill(const struct rounds *rounds, unsigned int round,
			const struct slot *slot)
{
	struct span span;

	if (!rounds->fill.nr_blocks || !rounds->fill.block_bytes)
		return;
	rounds_set_pre_state(rounds);
	pool_use(slot->nr_threads);
	span = span_begin();
	fill_range(slot->fill, &rounds->fill, ARENA_POISON, slot->nr_threads);
	span = span_end(span);
	pool_use(launch.nr_cpus);
	is_evicted = is_evicted && slot->fill->streams;
	rounds_print_sample(rounds, round, slot, slot->nr_threads, span, true);
}

static unsigned int plan_slots(const struct rounds *rounds, struct slot *slots)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < launch.nr_variants; i++)
		slots[nr++] = (struct slot){ .variant = i, .nr_threads = rounds->nr_threads };
	for (const struct fill_kind *kind = fill_kinds; rounds->limits && kind->name; kind++) {
		if (!kind->available())
			continue;
		slots[nr++] = (struct slot){ .fill = kind, .nr_threads = 1 };
		if (rounds->nr_threads > 1)
			slots[nr++] = (struct slot){
				.fill = kind, .nr_threads = rounds->nr_threads,
			};
	}
	return nr;
}

bool rounds_run(const struct rounds *rounds)
{
	struct slot slots[MOST_SLOTS];
	unsigned int order[MOST_SLOTS];
	unsigned int nr = plan_slots(rounds, slots);

	is_evicted = false;
	for (unsigned int round = 0; round < rounds->nr_rounds; round++) {
		random_order(order, nr, &launch.seed);
		if (launch_has_done(rounds->row, round))
			continue;
		for (unsigned int i = 0; i < nr; i++) {
			const struct slot *slot = &slots[order[i]];

			watch_begin(rounds->row, subject_of(slot));
			if (slot->fill)
				sample_fill(rounds, round, slot);
			else if (!rounds->sample_variant(rounds, round, slot))
				return false;
		}
		launch_end_round(rounds->row, round);
	}
	return true;
}
