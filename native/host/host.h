/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a hosted kernel and the program around it know of each other.
 *
 * Included by both sides, so it uses no type of libc and none of the kernel.
 * "The kernel" below is one variant's linked copy; a program holds several.
 */
#ifndef REAM_HOST_H
#define REAM_HOST_H

#include "plan.def"

#define HOST_MOST_CPUS 512	/* NR_CPUS of native.config, checked at boot */
#define HOST_MOST_KERNELS 32	/* in one program */
#define HOST_NR_CAPABILITY_WORDS 22	/* NCAPINTS of 6.12 to 7.3, checked at boot */

/**
 * struct host_machine - what a kernel learns of the CPU it runs on
 * @nr_cpus: CPUs that run kernel code, numbered from 0. There may be more
 *	than real ones; then some share one.
 * @capability: Words as CPUID fills x86_capability; synthetic words are 0. On
 *	arm64 those that a program gets of what it may use, AT_HWCAP and AT_HWCAP2.
 * @clflush_bytes: Line size of clwb and its kin.
 */
struct host_machine {
	unsigned int nr_cpus;
	unsigned int capability[HOST_NR_CAPABILITY_WORDS];
	unsigned int clflush_bytes;
};

/**
 * struct host_fact - a number of the build that the oracle needs
 * @name: As the kernel spells it; "page.flags" is an offset in struct page.
 * @value: Bytes, a bit number or a constant.
 */
struct host_fact {
	const char *name;
	unsigned long value;
};

/**
 * struct host_stub - one function that stands in for the kernel's own
 * @name: The kernel's name for it.
 * @honesty: "duplicated", "stubbed" or "custom"; see native/host/kernel/.
 * @nr_calls: CPU 0's count of how often it was reached. Every CPU has its own
 *	at its per-CPU offset from here, so that counting costs nothing that
 *	CPUs could contend for.
 */
struct host_stub {
	const char *name;
	const char *honesty;
	unsigned long *nr_calls;
};

/**
 * struct host_area - a structure of the kernel's, and what it should hold
 * @type: Its name.
 * @is: The structure.
 * @expected: As many bytes.
 * @bytes: Of each.
 * @fields: Where its fields are: type, dot and name. Ended by a NULL name.
 */
struct host_area {
	const char *type;
	const void *is;
	const void *expected;
	unsigned long bytes;
	const struct host_fact *fields;
};

/**
 * struct host_bugs - where a kernel's own BUG()s and WARN()s are
 * @first: Of its table of struct bug_entry, whose layout is the kernel's.
 * @end: Of that table.
 * @entry_bytes: Of an entry, which begins with the distance of the place.
 * @file_at: Where in it the distance of the file's name is.
 * @line_at: Where its line is, two bytes.
 * @flags_at: Where its flags are, two bytes.
 */
struct host_bugs {
	const void *first, *end;
	unsigned int entry_bytes;
	unsigned int file_at, line_at, flags_at;
};

/**
 * struct host_kernel - the one entry into a variant's copy of the kernel
 * @boot: Tell it the machine; called once, before anything else. Returns the
 *	capability words it will use: a subset, see custom.c.
 * @init_cpu: Make the calling thread its CPU; the thread's per-CPU base is set.
 * @ops: The experiment's own operations.
 * @facts: Ended by a NULL name.
 * @stubs: Array of pointers, ended by NULL.
 * @bugs: Where it says that it is wrong.
 * @text: Its code, and @text_end behind it, where a program must change that.
 */
struct host_kernel {
	const unsigned int *(*boot)(const struct host_machine *machine);
	void (*init_cpu)(unsigned int cpu, unsigned long per_cpu_offset);
	const void *ops;
	const struct host_fact *facts;
	struct host_stub *const *stubs;
	struct host_bugs bugs;
	void *text, *text_end;
};

/*
 * What the kernel may call of the program. These, and nothing else, are left
 * undefined in a variant's object.
 */

/**
 * host_submit() - run a function on another CPU
 * @run: Called with @job, on a pool thread, as soon as one is idle.
 * @job: Identifies the request; not submitted again before it has ended.
 */
void host_submit(void (*run)(void *job), void *job);

/**
 * host_cancel() - take a request back, or wait for its end
 * @job: As given to host_submit().
 *
 * Return: 1 if it had not started (and never will), 0 if it is finished or
 * was never submitted. Everything it wrote is visible to the caller.
 */
int host_cancel(void *job);

/* Take a request back without waiting: whether it had not started. */
int host_withdraw(void *job);

/* Wait until no request is left, waiting or running. */
void host_drain(void);

/**
 * host_sleep() - wait until another CPU wakes us
 * @word: What host_wake() will be called with.
 * @value: Return at once if @word holds another value.
 *
 * May also return for no reason: the caller looks at @word again.
 */
void host_sleep(unsigned int *word, unsigned int value);

/* The same, for no longer than @ns nanoseconds. */
void host_sleep_for(unsigned int *word, unsigned int value, unsigned long ns);

/* Nanoseconds since some moment. */
unsigned long host_now_ns(void);

/* Change the kernel's own code, which nobody may be running just now. */
void host_patch(void *at, const void *code, unsigned long bytes);

struct tlb_flushes;

/*
 * Where the kernel invalidates translations by instructions of its own, which a
 * program may not execute (arm64): from now on each is noted in @to.
 */
void host_note_invalidations(struct tlb_flushes *to);

/* Let another CPU run that shares the real one with us. */
void host_yield(void);

/* Wake all that sleep on @word, which may be gone by now. */
void host_wake(unsigned int *word);

/* Zeroed, 64-byte aligned; ends the program when there is no memory left. */
void *host_alloc(unsigned long bytes);
void host_free(void *memory);

/* A message of the kernel's, unformatted; goes to standard error. */
void host_say(const char *text);

#endif
