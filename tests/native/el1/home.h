/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of the home at EL1 offer each other. */
#ifndef REAM_EL1_HOME_H
#define REAM_EL1_HOME_H

#include <stdio.h>
#include "rounds.h"

/**
 * struct plan_file - a file that the plan names, linked into this program
 * @name: As the plan has it; NULL = it is none, but the end of the list.
 * @start: What it holds.
 * @end: Behind that.
 */
struct plan_file {
	const char *name;
	const unsigned char *start, *end;
};

/* The test that links this program writes both. */
extern const struct plan_file plan_files[];
extern const char plan_text[];

/* start.S enters these, and has that. */
_Noreturn void home_main(void);
void home_fault(unsigned long esr, unsigned long elr, unsigned long far);
long semihost(long operation, const void *argument);

extern uint64_t home_low_table[], home_high_table[];

void say(const char *text);
_Noreturn void leave(enum runner_exit code);

/* Before translation is on: this program's own memory. */
void home_make_tables(void);

/* Have memory at these addresses, which are the kernel's or the row's. */
void home_map(uintptr_t address, size_t bytes);

#endif
