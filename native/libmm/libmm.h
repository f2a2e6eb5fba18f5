/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a hosted mm and the program around it know of each other, besides
 * native/host/host.h. Included by both sides, so it uses no type of either.
 *
 * Physical addresses are virtual ones: the kernel's image and its RAM both lie
 * in the direct map, which begins at 0. All places are fixed, so that nothing
 * a kernel does can depend on where it was loaded.
 */
#ifndef REAM_LIBMM_H
#define REAM_LIBMM_H

#define LIBMM_PAGE_SHIFT 12
#define LIBMM_RAM_ADDRESS 0x200000000UL		/* of the first node */
#define LIBMM_FIRST_PFN (LIBMM_RAM_ADDRESS >> LIBMM_PAGE_SHIFT)
#define LIBMM_MOST_RAM_BYTES (64UL << 30)
#define LIBMM_USER_ADDRESS 0x100000000000UL	/* where programs map memory */
#define LIBMM_USER_BYTES 0x080000000000UL
#define LIBMM_MAP_ADDRESS 0x200000000000UL	/* of descriptors of frames */
#define LIBMM_VMALLOC_ADDRESS 0x280000000000UL
#define LIBMM_VMALLOC_BYTES (1UL << 45)
#define LIBMM_HEAP_ADDRESS 0x600000000000UL	/* host_alloc() */
#define LIBMM_MOST_HEAP_BYTES (64UL << 30)
#define LIBMM_STACKS_ADDRESS 0x580000000000UL
#define LIBMM_STACK_BYTES (256UL << 10)		/* and its alignment */
#define LIBMM_MOST_STACKS 4096UL

/* How a run ends; native/host/program.h has the others. */
enum libmm_exit {
	LIBMM_OK = 0,
	LIBMM_USAGE = 2,
	LIBMM_NO_RESOURCE = 3,
	LIBMM_ALARM = 5,	/* an oracle found something wrong */
	LIBMM_UNDEFINED_SYMBOL = 7,
	LIBMM_CRASHED = 9,
};

/* When memory is checked: never, after each step, when all are done, or after each eighth. */
enum libmm_checks { LIBMM_NEVER, LIBMM_EACH, LIBMM_LAST, LIBMM_SOME };

/* Of the measured step: where it begins and ends, and when the kernel's functions run in it. */
enum libmm_mark { LIBMM_BEGIN, LIBMM_ENTER, LIBMM_LEAVE, LIBMM_END };

/**
 * struct libmm_task - what a run is to do
 * @program: Steps, one a line, as ream writes them; ended by a zero byte.
 * @checks: When memory is checked.
 * @goes_on: An alarm does not end the program, and each rule raises one at most.
 */
struct libmm_task {
	const char *program;
	enum libmm_checks checks;
	int goes_on;
};

/**
 * struct libmm_kernel - the entries into the hosted kernel, its host_kernel.ops
 * @run: Boot and run the program; never returns, but ends by host_exit().
 * @resolve_fault: Map the frame of the kernel's own at an address, if its page
 *	tables have one; whether they have.
 * @find_fixup: Where the kernel goes on after a fault at @ip that it expects;
 *	0 = it expects none.
 */
struct libmm_kernel {
	void (*run)(const struct libmm_task *task);
	int (*resolve_fault)(unsigned long address);
	unsigned long (*find_fixup)(unsigned long ip);
};

/* What boot is told besides: NAME=VALUE, with a space between two. */
const char *host_boot_words(void);

/*
 * Alternatives are to make direct calls of those through memory that may become
 * direct, and none of calls of @nothing. Unless it is called, all stay.
 */
void host_make_calls_direct(const void *nothing);

/* Put this many frames of RAM, from LIBMM_FIRST_PFN on, into the direct map. */
void host_set_ram(unsigned long nr_frames);

/* Have the descriptors of these frames in pages of 2 MiB. */
void host_make_map_huge(void);

/* Map frames at an address of the kernel's, and take that away. */
void host_map(unsigned long address, unsigned long pfn, unsigned long nr_frames);
void host_unmap(unsigned long address, unsigned long bytes);

/* What this thread has had of a CPU. */
unsigned long host_cpu_ns(void);

/* For who counts what the kernel's functions execute in the measured step. */
void host_mark(enum libmm_mark mark);

/* A step is timed: from now on no memory of the run may be waited for. */
void host_expect_timing(void);
/* Of memory that comes later, too; nothing where no step is timed. */
void host_make_present(void *at, unsigned long bytes);

/* This thread's per-CPU area is so far from the linker's. */
void host_set_per_cpu(unsigned long offset);

/* A stack on which run(arg) begins once it is switched to; it never returns. */
void *host_new_stack(void (*run)(void *arg), void *arg);
/* Nothing runs on it any more; a pointer anywhere into it. */
void host_free_stack(void *stack_pointer);

/* Go on with another stack, and keep this one's pointer in @from. */
void host_switch(void **from, void *to);

/* Lines of the run's report, whole; standard output. */
void host_report(const char *line);

/* What is being done, for a report of a crash; has to last. */
void host_now_at(unsigned int line, const char *step);

/* The run is over. */
_Noreturn void host_exit(int code);

#endif
