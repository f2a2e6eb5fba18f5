/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interface between the hosted mm and the program around it, in addition to
 * native/host/host.h. Both sides include it, so it uses no type of either.
 *
 * Physical addresses equal virtual ones: the kernel's image and its RAM both lie
 * in the direct map, which begins at 0. All addresses are fixed, so that nothing
 * the kernel does depends on where it was loaded.
 */
#ifndef REAM_LIBMM_H
#define REAM_LIBMM_H

#define LIBMM_PAGE_SHIFT 12
#define LIBMM_RAM_ADDRESS 0x200000000UL		/* of the first node */
#define LIBMM_FIRST_PFN (LIBMM_RAM_ADDRESS >> LIBMM_PAGE_SHIFT)
#define LIBMM_MOST_RAM_BYTES (64UL << 30)
#define LIBMM_USER_ADDRESS 0x100000000000UL	/* where programs map memory */
#define LIBMM_USER_BYTES 0x080000000000UL
#define LIBMM_MAP_ADDRESS 0x200000000000UL	/* the memmap: struct pages */
#define LIBMM_VMALLOC_ADDRESS 0x280000000000UL
#define LIBMM_VMALLOC_BYTES (1UL << 45)
#define LIBMM_HEAP_ADDRESS 0x600000000000UL	/* host_alloc() */
#define LIBMM_MOST_HEAP_BYTES (64UL << 30)
#define LIBMM_STACKS_ADDRESS 0x580000000000UL
#define LIBMM_STACK_BYTES (256UL << 10)		/* and its alignment */
#define LIBMM_MOST_STACKS 4096UL

/* Exit codes of a run. native/host/program.h defines the others. */
enum libmm_exit {
	LIBMM_OK = 0,
	LIBMM_USAGE = 2,
	LIBMM_NO_RESOURCE = 3,
	LIBMM_ALARM = 5,	/* a check has failed */
	LIBMM_UNDEFINED_SYMBOL = 7,
	LIBMM_CRASHED = 9,
};

/* When memory is checked: never, after each step, after the last, or after every eighth. */
enum libmm_checks { LIBMM_NEVER, LIBMM_EACH, LIBMM_LAST, LIBMM_SOME };

/* Marks of the measured step: its begin and end, and entry to and return from the kernel. */
enum libmm_mark { LIBMM_BEGIN, LIBMM_ENTER, LIBMM_LEAVE, LIBMM_END };

/**
 * struct libmm_task - what a run is to do
 * @program: Steps, one per line, as ream writes them; ended by a zero byte.
 * @checks: When memory is checked.
 * @goes_on: Continue after an alarm. Each rule then raises at most one.
 */
struct libmm_task {
	const char *program;
	enum libmm_checks checks;
	int goes_on;
};

/**
 * struct libmm_kernel - the entries into the hosted kernel, its host_kernel.ops
 * @run: Boot and run the program. Never returns: it ends with host_exit().
 * @resolve_fault: Map the frame that the kernel's own page tables have for an
 *	address. Returns whether they have one.
 * @find_fixup: Look up @ip in the exception table. Returns the address where
 *	the kernel continues, or 0 if it expects no fault there.
 */
struct libmm_kernel {
	void (*run)(const struct libmm_task *task);
	int (*resolve_fault)(unsigned long address);
	unsigned long (*find_fixup)(unsigned long ip);
};

/* Options of boot, as NAME=VALUE words separated by spaces. */
const char *host_boot_words(void);

/*
 * Have alternatives turn the patchable indirect calls into direct ones, and
 * remove calls of @nothing. If this is not called, all calls stay indirect.
 */
void host_make_calls_direct(const void *nothing);

/* Put this many frames of RAM, from LIBMM_FIRST_PFN on, into the direct map. */
void host_set_ram(unsigned long nr_frames);

/* Back the struct pages of these frames with pages of 2 MiB. */
void host_make_map_huge(void);

/* Map frames at a kernel address, and unmap them again. */
void host_map(unsigned long address, unsigned long pfn, unsigned long nr_frames);
void host_unmap(unsigned long address, unsigned long bytes);

/* CPU time that this thread has used. */
unsigned long host_cpu_ns(void);

/* Tell an instruction counter where the kernel runs in the measured step. */
void host_mark(enum libmm_mark mark);

/* A step will be timed: populate all memory of the run, so that it does not fault. */
void host_expect_timing(void);
/* Populate memory that is mapped later. Does nothing unless a step is timed. */
void host_make_present(void *at, unsigned long bytes);

/* Set the per-CPU offset of this thread: that of the area of the CPU it runs as. */
void host_set_per_cpu(unsigned long offset);

/* Make a stack that starts run(arg) when it is switched to. run() must not return. */
void *host_new_stack(void (*run)(void *arg), void *arg);
/* Free a stack that nothing runs on any more. The pointer may point anywhere into it. */
void host_free_stack(void *stack_pointer);

/* Save the stack pointer in @from, and continue on the stack @to. */
void host_switch(void **from, void *to);

/* Write whole lines of the report to standard output. */
void host_report(const char *line);

/* Set the step that a crash report names. @step must stay valid. */
void host_now_at(unsigned int line, const char *step);

/* End the run. */
_Noreturn void host_exit(int code);

#endif
