/* SPDX-License-Identifier: GPL-2.0-only */
/* What every workload has: its words, its clock, and how it ends. */
#ifndef REAM_PROGRAM_H
#define REAM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes, as the lab has them. */
#define EXIT_USAGE 2
#define EXIT_CANNOT_RUN 3
#define EXIT_NOT_VERIFIED 5
#define EXIT_FAILED 6

/* Each program defines it: what its last words begin with. */
extern const char *const program_name;

/* Say why on standard error, in one line, and exit with @code. */
_Noreturn __attribute__((format(printf, 2, 3)))
void die(int code, const char *format, ...);

/**
 * struct timed - an operation that is timed
 * @window: By what name a plugin of QEMU knows it, if one counts; else of no use.
 * @began_ns: When it began.
 * @time_ns: What it took.
 */
struct timed {
	uint64_t window, began_ns, time_ns;
};

/* Read the clock just before and just after; another process may do the latter. */
void timed_begin(struct timed *timed);
void timed_end(struct timed *timed);

/* Write time and window as two members of a JSON object, without a comma at the end. */
void timed_print(const struct timed *timed);

/* CLOCK_MONOTONIC; a guest that counts instructions counts them with it. */
uint64_t now_ns(void);

/* @value's bits, thoroughly mixed; different ones give different results. */
uint64_t mixed(uint64_t value);

/* The number in @text, or an exit that names @option. */
unsigned long number_of(const char *option, const char *text);

/* Whether @value of an option is @yes; exits with EXIT_USAGE if it is not @no either. */
bool one_of(const char *option, const char *value, const char *yes, const char *no);

/**
 * struct word - one option, and where its value goes
 * @name: With its dashes.
 * @flag: Is set to true; an option with a flag has no value.
 * @number: Receives the value, a number.
 * @text: Receives the value as it is.
 */
struct word {
	const char *name;
	bool *flag;
	unsigned long *number;
	const char **text;
};

/*
 * Read a program's options. @words end with a NULL name. An option that is none
 * of them has a value and is given to @option, which returns false for a name
 * that it does not know; @option may be NULL. Exits with EXIT_USAGE for an
 * unknown option and for one that lacks its value.
 */
void read_words(char **argv, const struct word *words,
		bool (*option)(void *options, const char *name, char *value), void *options);

/* Run on @cpu only, from now on, or exit with EXIT_CANNOT_RUN. */
void run_on_cpu(unsigned long cpu);

/* How soon the OOM killer takes us: -1000 never, 1000 first of all. */
void set_oom_score(long score);

/* The first line of a small file, or NULL with errno; in a static buffer. */
const char *first_line(const char *path);

#endif
