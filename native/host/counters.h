/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters in addition to the clock: those of the CPU, of the memory controllers
 * and of the energy meters, as far as the host's kernel lets an ordinary program
 * read them.
 */
#ifndef REAM_COUNTERS_H
#define REAM_COUNTERS_H

/**
 * counters_open() - add a source to a counter
 * @text: NAME=TYPE:CONFIG counts an event of perf_event_open(2) in user space,
 *	in all threads that are started afterwards. NAME=TYPE:CONFIG:CPU counts
 *	it on one CPU for every program, as the uncore does. NAME=@FILE reads a
 *	number that only grows. NAME=@FILE:RANGE reads one that wraps to 0 after
 *	RANGE. Sources of the same name are added up.
 *
 * If a source cannot be opened, its counter is dropped, since the sum of the
 * other sources would be too small. counters_print_refused() reports why.
 */
void counters_open(const char *text);

/* Print a line with the counters that were dropped, and why. Print nothing if there are none. */
void counters_print_refused(void);

/* Read the counters. Call it outside of the timed span. */
void counters_begin(void);

/* Read the counters again, and compute how far they advanced since counters_begin(). */
void counters_end(void);

/* Print the differences as members of a JSON object, each followed by a comma. */
void counters_print(void);

#endif
