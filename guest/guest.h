/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PID 1 of a guest: what its parts offer each other.
 *
 * The host says what to do in words "key=value" after the kernel's own, and
 * learns what came of it on a virtio port. The console is a log for people.
 * Whatever fails is said on both, and the guest powers off.
 */
#ifndef REAM_GUEST_H
#define REAM_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define PATH_BYTES 512
#define TEXT_BYTES 1024

/*
 * In guest seconds. While it waits for the host, a guest's clock may run far
 * ahead (QEMU's -icount sleep=off), so only what the guest does itself has one.
 */
#define CHILD_DEADLINE_S 120
#define TEST_DEADLINE_S 3600
#define NO_DEADLINE 0

/* init.c: words, and the end */

/* The value of word @key; NULL if it was not given. */
const char *word(const char *key);

/* The value of word @key; without it, the guest gives up. */
const char *needed_word(const char *key);

/* The value of word @key as a number; without it, or with text, gives up. */
unsigned long number_word(const char *key);

/* The next name of a list with commas; *list moves on. NULL at its end. */
const char *next_name(const char **list, char *name, size_t name_bytes);

/* How many names next_name() will give; none for NULL. */
unsigned long count_names(const char *list);

/* Give up if a word was given that no code has read, since it would have no effect. */
void refuse_unread_words(void);

/**
 * give_up() - say what failed, here and to the host, and power off
 * @error: An errno value that says why; 0 = the text says it all.
 * @format: The step that failed and what it was done to.
 */
_Noreturn __attribute__((format(printf, 2, 3)))
void give_up(int error, const char *format, ...);

/* port.c: messages to the host, one JSON object per line */

/**
 * port_open() - find and open the virtio port named "ream"
 *
 * Return: whether there is one; ports come up after the guest has.
 */
bool port_open(void);

/* Begin the message {"@name": ...; its value is written to what this returns. */
FILE *message_begin(const char *name);

/* Write @text as a JSON string; NULL as null. */
void message_text(FILE *to, const char *text);

/* End a message, and hand it to the host. */
void message_end(void);

/* Wait until the host sends the line @text; anything else is the end. */
void wait_for_host(const char *text);

/* process.c: files, programs and modules */

uint64_t now_ns(void);

/* Read a small file's text, without its last newline; -1 and errno if not. */
int read_text(const char *path, char *text, size_t text_bytes);

/* Write @text to a file that is there; -1 and errno if not. */
int write_text(const char *path, const char *text);

/* Write @text to a setting of the guest's, or give up. */
void set_text(const char *path, const char *text);

/* Write @value to a parameter of a module, or give up. */
void set_parameter(const char *module, const char *name, const char *value);

/**
 * write_timed() - have a child write @text to @path, and time the write
 *
 * A write to sysfs or debugfs can run a driver; should that never end, it is
 * the child that hangs.
 *
 * Return: nanoseconds. Gives up on any failure.
 */
uint64_t write_timed(const char *path, const char *text);

/**
 * run_program() - run a program to its end, its output on the console
 * @argv: Its words, ending in NULL; the first is its path.
 * @deadline_s: Guest seconds, or NO_DEADLINE; then it is killed, and its
 * children with it.
 *
 * Return: its exit status as a shell has it: 128 + signal if one ended it,
 * 127 if it could not be started. Gives up if it outlives its deadline.
 */
int run_program(const char *const argv[], unsigned int deadline_s);

/* A program that talks with us, line by line, on its standard files. */
struct program {
	const char *name;
	pid_t pid;
	FILE *words, *lines;	/* to it, from it */
	char *line;		/* the last one */
	size_t line_bytes;
};

/* Start a program; its words as in run_program(). Gives up if it cannot. */
void program_start(struct program *program, const char *const argv[]);

/* Its next line, without newline, until it says another; NULL at its end. */
const char *program_hear(struct program *program);

/* Say a line to it; its answer as above, NULL also if it is dead. */
const char *program_ask(struct program *program, const char *what);

/* End its input, wait for it; its exit status as run_program() has it. */
int program_end(struct program *program);

/**
 * run_heard() - run a program to its end, and hand on what it says
 * @argv: As above.
 * @kind: Each line of its standard output is the value of a message of this kind.
 *
 * What it writes to standard error is on the console. It may take as long as
 * it says something now and then: the host does not wait for a silent guest.
 *
 * Return: its exit status as above.
 */
int run_heard(const char *const argv[], const char *kind);

/* Load /modules/@name.ko with @parameters, or give up. */
void load_module(const char *name, const char *parameters);

/* folios.c: what size of folios faults make */

/*
 * Have faults make folios of so many KiB where that is advised, or give up;
 * NULL: of every size there is.
 */
void enable_folios(const char *kib);

/* jobs.c: a program of the live stage, for one job after another */

/**
 * struct jobs - which program, and what it is told
 * @program: Its path.
 * @name: Each line that it says is the value of a message of this kind.
 * @options: Names of what the parts of a job are values of, a size of folios
 *	first; NULL at their end.
 * @enable: Has faults make folios of that size, in KiB.
 */
struct jobs {
	const char *program, *name;
	const char *const *options;
	void (*enable)(const char *kib);
};

/**
 * run_jobs() - run the program once for each job of the word runs
 *
 * The word is a list of jobs with commas, the parts of a job have colons between
 * them. The words rounds and seed are the program's options. What it says goes
 * to the host as it is, and its exit status in a message of kind "workload".
 *
 * Return: whether each ended well.
 */
bool run_jobs(const struct jobs *jobs);

/* copier.c: which module copies the folios that are migrated */

/*
 * Read the words adaptive= and reasons=, which copy_by() then applies. Without
 * reasons=, @usual_reasons apply. If these are NULL, the module's default does.
 */
void copy_words(const char *usual_reasons);

/* Have dcbm or mtcopy copy from now on, in this many parts, or "none" of them. */
void copy_by(const char *name, const char *parts);

/**
 * model_engine() - set the least time that a channel of swdma takes for a descriptor
 * @model: "SETUP_NS/MB_PER_S", or NULL to let it run as fast as its thread.
 *
 * Call it after copy_by("dcbm", ...), which loads the module.
 */
void model_engine(const char *model);

/* selftests.c: use a whole block device for swap, or give up */
void use_swap(const char *device);

/* pmem.c: load the driver for region0, and wait for the kernel's own probes */
void prepare_pmem(void);

/* Experiments. */

struct experiment {
	const char *name;
	bool (*run)(void);	/* returns whether all went well */
	struct experiment *next;
};

/* Register an experiment, so that experiment=NAME selects it. */
void add_experiment(struct experiment *experiment);

/*
 * Register an experiment before main() begins. main() names no experiment: a
 * guest has those that it was linked with.
 */
#define GUEST_EXPERIMENT(called, function)				\
	static __attribute__((constructor)) void add_##function(void)	\
	{								\
		static struct experiment experiment = {			\
			.name = (called), .run = (function),		\
		};							\
									\
		add_experiment(&experiment);				\
	}

#endif
