/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REAM_CALLS_H
#define REAM_CALLS_H

#include <stdint.h>
#include "quantities.h"

/* How a CPU went from one piece of code to the next one. */
enum way {
	WAY_ON,		/* it continued or jumped */
	WAY_CALL,
	WAY_RETURN,
};

struct calls;

/* Allocate the state of one CPU, for functions 0 to @nr_functions - 1. NULL on failure. */
struct calls *calls_new(unsigned int nr_functions);

/* Reset all counts and the stack. */
void calls_begin(struct calls *calls);

/**
 * calls_follow() - record the start of a piece of code
 * @way: How the CPU got here from the previous piece.
 * @behind: Address after the previous piece, where a call from it returns to.
 * @at: Address of this piece.
 * @function: Function that contains this piece.
 *
 * A call to code that is not counted is ignored. Functions called by such code
 * count as called by its caller. A jump to another function counts as a call that
 * returns together with the function that jumped.
 *
 * Return: false if functions call each other too deep to follow.
 */
_Bool calls_follow(struct calls *calls, enum way way, uint64_t behind, uint64_t at,
		   unsigned int function);

/* Add to the counts of the running function and of all its callers. */
void calls_add(struct calls *calls, enum quantity quantity, uint64_t number);

/* Return from all functions. */
void calls_end(struct calls *calls);

/* Counts of a function together with all that it called. Call it after calls_end(). */
const uint64_t *calls_counts(const struct calls *calls, unsigned int function);

#endif
