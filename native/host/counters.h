/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters beside the clock: the CPU's own, the memory controllers' and the
 * energy meters', as far as the host's kernel lets an ordinary program read
 * them.
 */
#ifndef REAM_COUNTERS_H
#define REAM_COUNTERS_H

/**
 * counters_open() - add a source to a counter
 * @text: NAME=TYPE:CONFIG counts an event of perf_event_open(2) in user space,
 *	in all threads that are started afterwards; NAME=TYPE:CONFIG:CPU counts
 *	it on one CPU for every program, as the uncore does; NAME=@FILE reads a
 *	number that only grows; NAME=@FILE:RANGE reads one that begins at 0
 *	again behind RANGE. Sources of one name are added up.
 *
 * A source that cannot be opened takes its counter away: the sum of the others
 * would be too small. counters_print_refused() says why.
 */
void counters_open(const char *text);

/* Print a line that says which counters were taken away, and why; none if all are there. */
void counters_print_refused(void);

/* Note where the counters stand. Stands outside of the two readings of the clock. */
void counters_begin(void);

/* Note how far they went since counters_begin(). */
void counters_end(void);

/* Print what they went as members of a JSON object, each with a comma behind it. */
void counters_print(void);

#endif
