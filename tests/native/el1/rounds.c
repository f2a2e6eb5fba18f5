// SPDX-License-Identifier: GPL-2.0-only
/* At EL1: a row is one sample of one kernel, which a plugin counts; nothing is timed. */
#include <string.h>
#include "home.h"

void rounds_add_variants(struct rounds *rounds,
			 bool (*sample)(struct rounds *rounds, const struct slot *slot))
{
	rounds->slots[0] = (struct slot){
		.subject = launch.variant_names[0], .nr_threads = 1, .sample = sample,
	};
}

void rounds_add_limit(struct rounds *rounds, const char *name, const void *limit,
		      bool (*sample)(struct rounds *rounds, const struct slot *slot))
{
	(void)rounds;
	(void)name;
	(void)limit;
	(void)sample;
}

void rounds_add_fills(struct rounds *rounds)
{
	(void)rounds;
}

bool rounds_run(struct rounds *rounds)
{
	const struct slot *slot = rounds->slots;
	bool verified;

	launch.is_warm_up = true;
	verified = slot->sample(rounds, slot);
	launch.is_warm_up = false;
	return verified && slot->sample(rounds, slot);
}

/* The emulator counts; the CPU's own counters are nobody's here. */
void counters_begin(void)
{
}

void counters_end(void)
{
}

void rounds_set_pre_state(struct rounds *rounds)
{
	memset(rounds->arena->start, (int)(ARENA_POISON & 0xff), rounds->map_bytes);
}

void rounds_arena_written(struct rounds *rounds)
{
	(void)rounds;
}

bool rounds_print_sample(const struct rounds *rounds, const struct slot *slot,
			 unsigned int nr_threads, struct span span, bool verified)
{
	(void)rounds;
	(void)slot;
	(void)nr_threads;
	(void)span;
	return verified;
}

struct span launch_stop_clock(unsigned int variant, struct span begin)
{
	(void)variant;
	return span_end(begin);
}

void launch_tell(const char *name, unsigned long value)
{
	(void)name;
	(void)value;
}

void pool_reset_participants(void)
{
}

unsigned int pool_nr_participants(void)
{
	return 1;
}

void reach_begin(void)
{
}

void reach_end(void)
{
}
