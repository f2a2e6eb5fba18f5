// SPDX-License-Identifier: GPL-2.0-only
/*
 * What functions did together with what they called: a stack of those that are
 * under way on a CPU, which follows from the calls and returns it executes. A
 * frame remembers what had been counted when it was entered.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "calls.h"

#define MOST_FRAMES 512

/* Not addresses of code: where the caller's is not known, and of a jump. */
#define BACK_UNKNOWN 0
#define BACK_WITH_CALLER 1

struct frame {
	uint64_t back;
	unsigned int function;
	uint64_t entered[NR_QUANTITIES];
};

struct calls {
	unsigned int nr_functions, nr_frames;
	uint64_t now[NR_QUANTITIES];
	struct frame frames[MOST_FRAMES];
	unsigned int *nr_entered;	/* by function: a recursion is counted once */
	uint64_t (*counts)[NR_QUANTITIES];
};

struct calls *calls_new(unsigned int nr_functions)
{
	struct calls *calls = calloc(1, sizeof(*calls));

	if (!calls)
		return NULL;
	calls->nr_functions = nr_functions;
	calls->nr_entered = calloc(nr_functions, sizeof(*calls->nr_entered));
	calls->counts = calloc(nr_functions, sizeof(*calls->counts));
	return calls->nr_entered && calls->counts ? calls : NULL;
}

void calls_begin(struct calls *calls)
{
	calls->nr_frames = 0;
	memset(calls->now, 0, sizeof(calls->now));
	memset(calls->nr_entered, 0, calls->nr_functions * sizeof(*calls->nr_entered));
	memset(calls->counts, 0, calls->nr_functions * sizeof(*calls->counts));
}

static bool enter(struct calls *calls, uint64_t back, unsigned int function)
{
	struct frame *frame = &calls->frames[calls->nr_frames];

	if (calls->nr_frames == MOST_FRAMES)
		return false;
	frame->back = back;
	frame->function = function;
	memcpy(frame->entered, calls->now, sizeof(frame->entered));
	calls->nr_entered[function]++;
	calls->nr_frames++;
	return true;
}

static void leave(struct calls *calls)
{
	const struct frame *frame = &calls->frames[--calls->nr_frames];
	uint64_t *to = calls->counts[frame->function];

	if (--calls->nr_entered[frame->function])
		return;
	for (int i = 0; i < NR_QUANTITIES; i++)
		to[i] += calls->now[i] - frame->entered[i];
}

/* Leave the function that returned and those that had jumped to it; where it was called from. */
static uint64_t leave_one(struct calls *calls)
{
	uint64_t back = BACK_UNKNOWN;

	while (calls->nr_frames) {
		back = calls->frames[calls->nr_frames - 1].back;
		leave(calls);
		if (back != BACK_WITH_CALLER)
			break;
	}
	return back;
}

/* Whether a function that is under way was called from before @at; it is left then. */
static bool go_back(struct calls *calls, uint64_t at)
{
	unsigned int nr = calls->nr_frames;

	while (nr && calls->frames[nr - 1].back != at)
		nr--;
	if (!nr)
		return false;
	while (calls->nr_frames >= nr)
		leave(calls);
	return true;
}

bool calls_follow(struct calls *calls, enum way way, uint64_t behind, uint64_t at,
		  unsigned int function)
{
	const struct frame *top;

	if (way == WAY_CALL && at != behind)
		return enter(calls, behind, function);
	if (way == WAY_RETURN && !go_back(calls, at))
		return enter(calls, leave_one(calls), function);
	top = &calls->frames[calls->nr_frames - 1];
	if (calls->nr_frames && top->function == function)
		return true;
	return enter(calls, calls->nr_frames ? BACK_WITH_CALLER : BACK_UNKNOWN, function);
}

void calls_add(struct calls *calls, enum quantity quantity, uint64_t number)
{
	calls->now[quantity] += number;
}

void calls_end(struct calls *calls)
{
	while (calls->nr_frames)
		leave(calls);
}

const uint64_t *calls_counts(const struct calls *calls, unsigned int function)
{
	return calls->counts[function];
}
