/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interface between a hosted kernel and the program around it.
 *
 * Both sides include it, so it uses no types of libc or of the kernel. "The
 * kernel" below is the linked copy of one variant; a program holds several.
 */
#ifndef REAM_HOST_H
#define REAM_HOST_H

#include "plan.def"

#define HOST_MOST_CPUS 512	/* NR_CPUS of native.config, checked at boot */
#define HOST_MOST_KERNELS 32	/* in one program */
#define HOST_NR_CAPABILITY_WORDS 22	/* NCAPINTS of 6.12 to 7.3, checked at boot */

/**
 * struct host_machine - description of the machine for a kernel
 * @nr_cpus: Number of CPUs that run kernel code, numbered from 0. If there are
 *	more than real ones, some share a real one.
 * @capability: Words as CPUID fills x86_capability; synthetic words are 0. On
 *	arm64 the words AT_HWCAP and AT_HWCAP2 of the auxiliary vector.
 * @clflush_bytes: Line size of clflush and clwb.
 */
struct host_machine {
	unsigned int nr_cpus;
	unsigned int capability[HOST_NR_CAPABILITY_WORDS];
	unsigned int clflush_bytes;
};

/**
 * struct host_fact - a number of the build that the oracle needs
 * @name: Its name in the kernel. "page.flags" is an offset in struct page.
 * @value: An offset in bytes, a bit number or a constant.
 */
struct host_fact {
	const char *name;
	unsigned long value;
};

/**
 * struct host_stub - one function that replaces the kernel's own
 * @name: The function's name.
 * @honesty: "duplicated", "stubbed" or "custom"; see native/host/kernel/.
 * @nr_calls: Number of calls on CPU 0. Every CPU has a counter of its own at its
 *	per-CPU offset from this one, so that counting causes no contention
 *	between CPUs.
 */
struct host_stub {
	const char *name;
	const char *honesty;
	unsigned long *nr_calls;
};

/**
 * struct host_area - a structure of the kernel and its expected contents
 * @type: Name of its type.
 * @is: The structure.
 * @expected: The expected contents.
 * @bytes: Size of each.
 * @fields: Offsets of its fields, named "type.field". Ended by a NULL name.
 */
struct host_area {
	const char *type;
	const void *is;
	const void *expected;
	unsigned long bytes;
	const struct host_fact *fields;
};

/**
 * struct host_bugs - the table of a kernel's BUG()s and WARN()s
 * @first: Start of the table of struct bug_entry, in the kernel's layout.
 * @end: End of that table.
 * @entry_bytes: Size of an entry. It begins with the relative address of the trap.
 * @file_at: Offset of the relative address of the file name.
 * @line_at: Offset of the line number, which has two bytes.
 * @flags_at: Offset of the flags, which have two bytes.
 */
struct host_bugs {
	const void *first, *end;
	unsigned int entry_bytes;
	unsigned int file_at, line_at, flags_at;
};

/**
 * struct host_kernel - the entry points of a variant's copy of the kernel
 * @boot: Describe the machine to it; called once, before anything else. Returns
 *	the capability words that it will use, which are a subset; see custom.c.
 * @init_cpu: Make the calling thread a CPU. Its per-CPU base is already set.
 * @ops: The experiment's own operations.
 * @facts: Facts of the build, ended by a NULL name.
 * @stubs: Array of pointers, ended by NULL.
 * @bugs: Table of its BUG()s and WARN()s.
 * @text: Start of its code, up to @text_end, if the program has to patch it.
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
 * Functions of the program that the kernel may call. Only these are undefined
 * symbols in a variant's object.
 */

/**
 * host_submit() - run a function on another CPU
 * @run: Called with @job on a pool thread, as soon as one is idle.
 * @job: Identifies the request. It must not be submitted again before it ends.
 */
void host_submit(void (*run)(void *job), void *job);

/**
 * host_cancel() - cancel a request, or wait for its end
 * @job: The job that was given to host_submit().
 *
 * Return: 1 if it had not started (and never will), 0 if it has finished or was
 * never submitted. The caller sees everything that the job wrote.
 */
int host_cancel(void *job);

/* Cancel a request without waiting. Return: whether it had not started. */
int host_withdraw(void *job);

/* Wait until no request is left, waiting or running. */
void host_drain(void);

/**
 * host_sleep() - sleep until another CPU calls host_wake()
 * @word: The word that host_wake() will be called with.
 * @value: Return at once if @word holds another value.
 *
 * Spurious wakeups are possible, so the caller must check @word again.
 */
void host_sleep(unsigned int *word, unsigned int value);

/* The same, for no longer than @ns nanoseconds. */
void host_sleep_for(unsigned int *word, unsigned int value, unsigned long ns);

/* Monotonic time in nanoseconds, since an arbitrary start. */
unsigned long host_now_ns(void);

/* Patch the kernel's code. No CPU may be executing it meanwhile. */
void host_patch(void *at, const void *code, unsigned long bytes);

struct tlb_flushes;

/*
 * On arm64 the kernel flushes TLBs by instructions that a program may not
 * execute. Record each such instruction in @to from now on.
 */
void host_note_invalidations(struct tlb_flushes *to);

/* Let another CPU run that shares the real CPU of the caller. */
void host_yield(void);

/* Wake all threads that sleep on @word. It need not be mapped any more. */
void host_wake(unsigned int *word);

/* Allocate zeroed, 64-byte aligned memory. Ends the program if there is none left. */
void *host_alloc(unsigned long bytes);
void host_free(void *memory);

/* Print an unformatted message of the kernel on standard error. */
void host_say(const char *text);

#endif
