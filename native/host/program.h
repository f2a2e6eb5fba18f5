/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program around hosted kernels: interfaces between its parts.
 *
 * A runner boots every kernel that is linked into it and maps an arena. It then
 * times operations of the kernels, and fills of the same bytes as their limit.
 */
#ifndef REAM_PROGRAM_H
#define REAM_PROGRAM_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include "arch.h"
#include "host.h"

/* Exit codes of the runner. lab/ream/stage/native.py maps them to those of ream. */
enum runner_exit {
	RUNNER_OK = 0,
	RUNNER_USAGE = 2,
	RUNNER_NO_RESOURCE = 3,
	RUNNER_NOT_VERIFIED = 5,
	RUNNER_UNDEFINED_SYMBOL = 7,
	RUNNER_WARNED = 8,
	RUNNER_CRASHED = 9,
};

/* Print one line on standard error and exit. */
_Noreturn __attribute__((format(printf, 2, 3)))
void die(enum runner_exit code, const char *format, ...);

static inline size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline size_t max_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* cpu.c: the machine as CPUID and the CPU affinity mask describe it */

/**
 * cpu_machine() - describe the CPUs this process may run on
 * @nr_cpus: Number of CPUs that the kernels see, or 0 for all real ones. If
 *	there are more than real ones, they share these.
 * @all_real: Treat each of these as a real CPU, and pin no thread. Otherwise
 *	launches that run at the same time would be pinned to the same CPUs.
 *
 * Pins the calling thread to the first CPU.
 */
const struct host_machine *cpu_machine(unsigned int nr_cpus, bool all_real);

/* Number of real CPUs in use. */
unsigned int cpu_nr_real(void);

/* Pin the calling thread to the real CPU that CPU @cpu of the machine uses. */
void cpu_pin(unsigned int cpu);

/*
 * Sections that the final link merges from all kernels, in link order. The
 * linker derives these symbols from their names; see variant.lds.
 */
extern struct host_kernel *const __start_ream_kernels[];
extern struct host_kernel *const __stop_ream_kernels[];
extern char __start_percpu[], __stop_percpu[];
extern char __start_altinstructions[] __attribute__((weak));
extern char __stop_altinstructions[] __attribute__((weak));

/* kernel.c: the kernels linked into this program */

/* Boot every kernel, apply alternatives, and make this thread CPU 0. */
void kernel_boot_all(const struct host_machine *machine);

/* Give the calling thread its per-CPU area as CPU @cpu, in every kernel. */
void kernel_enter_cpu(unsigned int cpu);

/* Number of calls of a stub on all CPUs. It is exact while they are idle. */
unsigned long kernel_nr_calls(const struct host_stub *stub);

/* traps.c */

/**
 * traps_install() - install handlers that report a kernel's faults
 * @forbidden_path: File of lines "address variant symbol", for symbols that are
 *	undefined. An access to such an address ends the program with the name.
 */
void traps_install(const char *forbidden_path);

/* Prepare a pool thread likewise. Only CPU 0 reports a sample that is stuck. */
void traps_enter_thread(void);

/**
 * traps_skip_interrupt_flag() - choose whether cli and sti are skipped
 * @skip: Skip them from now on. Otherwise, as initially, they are faults.
 *
 * A program cannot change the interrupt flag, and need not: no interrupt handler
 * runs on its threads. Skipping costs a signal, so do not use it in timed code.
 */
void traps_skip_interrupt_flag(bool skip);

/* Number of WARNs that the kernels have raised so far. */
unsigned int traps_nr_warnings(void);

/* watch.c: the watchdog of samples */

/**
 * struct watched - the current or last sample
 * @row: Name of its row. NULL before the first sample.
 * @subject: Name of its variant or limit.
 * @allowed_ns: How long it may take.
 * @slowest_ns: Slowest sample of the row before it; 0 if it is the first.
 */
struct watched {
	const char *row;
	const char *subject;
	uint64_t allowed_ns;
	uint64_t slowest_ns;
};

const struct watched *watch_now(void);

/* Set the limit of the first sample of a row, and the lower bound of later limits. */
void watch_set_patience(unsigned int first_s, unsigned int least_s);

/**
 * watch_begin() - start to watch a sample
 * @row: Name of the row. It must stay valid, and so must @subject.
 * @subject: Name of the variant or limit.
 *
 * SIGALRM ends the program if the sample does not end in time. Call this outside
 * of the timed span. It also ends the watch of the previous sample.
 */
void watch_begin(const char *row, const char *subject);

/* Stop watching: the sample is verified and only has to be printed. */
void watch_end(void);

/* reach.c: which functions the rows of a plan enter */

/**
 * reach_read() - read the functions whose entries are watched
 * @path: File of their addresses in this program, ascending, one per line.
 */
void reach_read(const char *path);

/* Set the breakpoints before a sample, and remove them after it. */
void reach_begin(void);
void reach_end(void);

/* Handle a trap. Return: whether it was at a watched entry, which then continues. */
bool reach_meet(void *context);

/* Print the numbers of the functions entered since the last call. */
void reach_print(const char *row);

/* fault.c */

/**
 * struct fault_cause - the cause of a fault, as far as it is known
 * @symbol: The undefined symbol that was accessed, or NULL.
 * @file: Source file of the BUG(), or NULL if it is none.
 * @line: Line in @file.
 */
struct fault_cause {
	const char *symbol;
	const char *file;
	unsigned int line;
};

/* Find the bounds of code. Call it before the first report. */
void fault_prepare(void);

/* Print the state of this thread as JSON, from a signal handler. @cause may be NULL. */
void fault_report(const siginfo_t *info, const void *context, const struct fault_cause *cause);

/* pool.c: the other CPUs */

/* Start a thread for each CPU but CPU 0, which is the caller. All CPUs are in use. */
void pool_start(unsigned int nr_cpus);

/*
 * Run jobs only on the first @nr_cpus CPUs from now on; 0 means all. Otherwise
 * two jobs could share a real CPU while another one is idle.
 */
void pool_use(unsigned int nr_cpus);

/**
 * pool_run() - divide some work among several CPUs
 * @nr_threads: Number of CPUs: the caller and @nr_threads - 1 pool threads.
 * @run: Called as run(@context, index, @nr_threads). Index 0 is the caller.
 */
void pool_run(unsigned int nr_threads,
	      void (*run)(void *context, unsigned int index, unsigned int nr),
	      void *context);

/* Send a signal to every pool thread that runs a job. Return: their number. */
unsigned int pool_signal_running(int signal);

/* Reset, and then count, the CPUs that have run jobs. The caller is counted, too. */
void pool_reset_participants(void);
unsigned int pool_nr_participants(void);

/* turns.c: CPUs that take turns */

/* Let CPUs run one at a time from now on. Call it before pool_start(). */
void turns_begin(void);
bool turns_taken(void);

/* Make the calling thread this CPU. CPU 0 has the first turn. */
void turns_enter(unsigned int cpu);

/* Mark an idle CPU as ready to run. The caller must have the turn. */
void turns_make_ready(unsigned int cpu);

/* Let all other ready CPUs have a turn. Return: whether there were any. */
bool turns_yield(void);

/* The simulated time that kernels read. */
uint64_t turns_now_ns(void);

/* Let other CPUs have a turn. If none is ready, advance the time by @ns. */
void turns_sleep_for(uint64_t ns);

/* Become idle until the next turn. With @had_it, pass the caller's turn on first. */
void turns_idle(bool had_it);

/* fill.c: the physical limit: writing the same bytes without any computation */

/* Drain the stores of this CPU. Each architecture defines it. */
void fill_drain(void);

/**
 * struct fill_range - the bytes that an operation writes
 * @start: Start address, which is 64-byte aligned.
 * @block_bytes: Size of a contiguous block, a multiple of 64.
 * @stride_bytes: Distance from one block to the next.
 * @nr_blocks: Number of blocks.
 */
struct fill_range {
	unsigned char *start;
	size_t block_bytes;
	size_t stride_bytes;
	size_t nr_blocks;
};

struct fill_kind {
	const char *name;
	bool streams;	/* leaves the target out of the caches */
	bool (*available)(void);
	void (*fill)(unsigned char *to, size_t bytes, uint64_t word);
};

/* All kinds, ended by a NULL name. The CPU may lack some of them. */
extern const struct fill_kind fill_kinds[];

/* Fill a range with @nr_threads CPUs. The stores are drained on return. */
void fill_range(const struct fill_kind *kind, const struct fill_range *range,
		uint64_t word, unsigned int nr_threads);

/* arena.c: the memory in which memory maps are made */

#define ARENA_POISON 0xa5a5a5a5a5a5a5a5ULL

enum pre_state {
	PRE_EVICTED,	/* filled with poison; no cache holds a line of it */
	PRE_DIRTY,	/* filled with poison by cached stores just before */
	PRE_UNTOUCHED,	/* not populated; reads as zero */
};

struct arena {
	unsigned char *start;
	size_t bytes;
};

/* Map @bytes at @address with transparent huge pages, and touch them. */
struct arena arena_map(uintptr_t address, size_t bytes, unsigned int nr_threads);

/* How much of the arena huge pages back, according to the host's /proc/self/smaps. */
size_t arena_huge_bytes(const struct arena *arena);

/* Bring the first @bytes of the arena into a pre-state. */
void arena_set_pre_state(const struct arena *arena, size_t bytes,
			 enum pre_state state, unsigned int nr_threads);

/**
 * struct image - initial or expected contents of memory
 * @start: The oracle's file, mapped read-only. NULL if there is none.
 * @words: The same as an array of numbers.
 * @bytes: Length of the image. It repeats after that.
 * @path: Path of the file.
 */
struct image {
	union {
		const unsigned char *start;
		const unsigned long *words;
	};
	size_t bytes;
	char *path;
};

static inline size_t image_nr_words(const struct image *image)
{
	return image->bytes / sizeof(*image->words);
}

#define ARENA_NO_DIFFERENCE SIZE_MAX

/* Offset of the first byte that differs from the image. */
size_t arena_first_difference(const unsigned char *start, size_t bytes,
			      const struct image *image, unsigned int nr_threads);

/*
 * Compare @bytes from @start on with an image. Report the first difference with
 * the names @row, @subject and @where, and the 64 bytes around it. If @type is not
 * NULL, the memory is an array of structures of that type, of 64 bytes each.
 */
bool arena_is(const char *row, const char *subject, const char *where,
	      const char *type, const unsigned char *start, size_t bytes,
	      const struct image *image, unsigned int nr_threads);

/* A guard area after the map detects writes beyond its end. */
#define ARENA_GUARD_BYTES 65536UL

/* Fill the guard at @start. */
void arena_set_guard(unsigned char *start);

/* Check that the whole guard still holds @expected, and report if not. */
bool arena_guard_is_whole(const char *row, const char *subject, const unsigned char *start,
			  unsigned char expected);

/* say.c */

/*
 * Compare a structure with its expected contents. Report the first wrong field,
 * with @who before it, and after it @of, which identifies the structure.
 */
bool area_is_as_expected(const char *who, const char *of, const struct host_area *area);

/* Compare all @areas, up to one without a type, which @subject wrote for @row. */
bool areas_are_as_expected(const char *row, const char *subject, const char *of,
			   const struct host_area *areas);

/* caches.c */

/* Evict some memory from all caches. */
void cache_evict(void *start, size_t bytes);

/* Read every cache line of some memory. */
void cache_touch(const void *start, size_t bytes);

/* random.c: splitmix64 */
uint64_t random_next(uint64_t *state);
void random_order(unsigned int *order, unsigned int nr, uint64_t *state);

#endif
