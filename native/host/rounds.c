// SPDX-License-Identifier: GPL-2.0-only
/* The rounds of a row: each runs all variants and limits in random order. */
#include "rounds.h"

void rounds_set_pre_state(struct rounds *rounds)
{
	if (rounds->pre_state == PRE_EVICTED && rounds->is_evicted)
		return;
	arena_set_pre_state(rounds->arena, rounds->map_bytes, rounds->pre_state,
			    launch.nr_cpus);
	rounds->is_evicted = rounds->pre_state == PRE_EVICTED;
}

void rounds_arena_written(struct rounds *rounds)
{
	rounds->is_evicted = false;
}

bool rounds_print_sample(const struct rounds *rounds, const struct slot *slot,
			 unsigned int nr_threads, struct span span, bool verified)
{
	const struct sample sample = {
		.row = rounds->row,
		.round = rounds->round,
		.is_limit = slot->limit,
		.subject = slot->subject,
		.nr_threads = nr_threads,
		.span = span,
		.nr_bytes = rounds->nr_bytes,
		.verified = verified,
		.beside = slot->limit ? NULL : rounds->beside,
	};

	if (!launch.is_warm_up || !verified)
		launch_print_sample(&sample);
	return verified;
}

static bool sample_fill(struct rounds *rounds, const struct slot *slot)
{
	const struct fill_kind *kind = slot->limit;
	struct span span;

	if (!rounds->fill.nr_blocks || !rounds->fill.block_bytes)
		return true;
	rounds_set_pre_state(rounds);
	pool_use(slot->nr_threads);
	span = span_begin();
	fill_range(kind, &rounds->fill, ARENA_POISON, slot->nr_threads);
	span = span_end(span);
	pool_use(launch.nr_cpus);
	rounds->is_evicted = rounds->is_evicted && kind->streams;
	return rounds_print_sample(rounds, slot, slot->nr_threads, span, true);
}

static void add(struct rounds *rounds, struct slot slot)
{
	if (rounds->nr_slots == MOST_SLOTS)
		die(RUNNER_USAGE, "%s: more than %d variants and limits", rounds->row,
		    MOST_SLOTS);
	rounds->slots[rounds->nr_slots++] = slot;
}

void rounds_add_variants(struct rounds *rounds,
			 bool (*sample)(struct rounds *rounds, const struct slot *slot))
{
	for (unsigned int i = 0; i < launch.nr_variants; i++)
		add(rounds, (struct slot){
			.subject = launch.variant_names[i], .variant = i,
			.nr_threads = rounds->nr_threads, .sample = sample,
		});
}

void rounds_add_limit(struct rounds *rounds, const char *name, const void *limit,
		      bool (*sample)(struct rounds *rounds, const struct slot *slot))
{
	struct slot slot = {
		.subject = name, .limit = limit, .nr_threads = 1, .sample = sample,
	};

	if (launch.counts)	/* limits are times, so counts have none */
		return;
	add(rounds, slot);
	slot.nr_threads = rounds->nr_threads;
	if (slot.nr_threads > 1)
		add(rounds, slot);
}

void rounds_add_fills(struct rounds *rounds)
{
	for (const struct fill_kind *kind = fill_kinds; kind->name; kind++)
		if (kind->available())
			rounds_add_limit(rounds, kind->name, kind, sample_fill);
}

static bool take_sample(struct rounds *rounds, const struct slot *slot)
{
	launch.variant = slot->variant;
	watch_begin(rounds->row, slot->subject);
	return slot->sample(rounds, slot);
}

/*
 * The first call of a kernel in a launch or row finds page tables, code and
 * buffers cold, and may take twice as long.
 */
static bool warm_up(struct rounds *rounds)
{
	bool verified = true;

	launch.is_warm_up = true;
	for (unsigned int i = 0; verified && i < launch.nr_variants; i++)
		verified = take_sample(rounds, &rounds->slots[i]);
	launch.is_warm_up = false;
	rounds->warms_up = false;
	return verified;
}

bool rounds_run(struct rounds *rounds)
{
	unsigned int order[MOST_SLOTS];

	rounds->warms_up |= launch.counts;
	for (rounds->round = 0; rounds->round < rounds->nr_rounds; rounds->round++) {
		random_order(order, rounds->nr_slots, &launch.seed);
		if (launch_has_done(rounds->row, rounds->round))
			continue;
		if (rounds->warms_up && !warm_up(rounds))
			return false;
		for (unsigned int i = 0; i < rounds->nr_slots; i++)
			if (!take_sample(rounds, &rounds->slots[order[i]]))
				return false;
		launch_end_round(rounds->row, rounds->round);
	}
	return true;
}
