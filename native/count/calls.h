/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REAM_CALLS_H
#define REAM_CALLS_H

#include <stdint.h>
#include "quantities.h"

/* How a CPU came from one piece of code to the next one. */
enum way {
	WAY_ON,		/* it went on, or jumped */
	WAY_CALL,
	WAY_RETURN,
};

struct calls;

/* For one CPU, with functions from 0 to @nr_functions - 1; NULL without memory. */
struct calls *calls_new(unsigned int nr_functions);

/* Forget everything. */
void calls_begin(struct calls *calls);

/**
 * calls_follow() - note that a piece of code begins
 * @way: How the CPU came here from the piece before it.
 * @behind: The address behind that piece: where a call from it returns to.
 * @at: The address of this piece.
 * @function: The function that it is in.
 *
 * A call to code that is not counted and returns is no call, and what that code
 * calls is called by its caller. A jump to another function is a call that
 * returns together with the function that jumped.
 *
 * Return: false if functions call each other too deep to follow.
 */
_Bool calls_follow(struct calls *calls, enum way way, uint64_t behind, uint64_t at,
		   unsigned int function);

/* Add to what the function that runs, and all that have called it, do. */
void calls_add(struct calls *calls, enum quantity quantity, uint64_t number);

/* Return from everything. */
void calls_end(struct calls *calls);

/* What a function did with all that it called; after calls_end(). */
const uint64_t *calls_counts(const struct calls *calls, unsigned int function);

#endif
