/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program around hosted kernels: what its parts offer each other.
 *
 * A runner boots every kernel linked into it, maps an arena, and then times
 * operations of theirs against fills of the same bytes.
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

/* The runner's own exit codes; lab/ream/stage/native.py turns them into ream's. */
enum runner_exit {
	RUNNER_OK = 0,
	RUNNER_USAGE = 2,
	RUNNER_NO_RESOURCE = 3,
	RUNNER_NOT_VERIFIED = 5,
	RUNNER_UNDEFINED_SYMBOL = 7,
	RUNNER_WARNED = 8,
	RUNNER_CRASHED = 9,
};

/* Say one line on standard error and leave. */
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

/* cpu.c: the machine as its CPU and the scheduler describe it */

/**
 * cpu_machine() - describe the CPUs this process may run on
 * @nr_cpus: CPUs of the machine that kernels see; 0 = as many as there are.
 *	Fewer are used if it is less; if it is more, they share the real ones.
 * @all_real: Take each of these for a real one, however many there are. Then no
 *	thread is ever pinned: launches that run at the same time would share a CPU.
 *
 * Pins the calling thread to the first of them.
 */
const struct host_machine *cpu_machine(unsigned int nr_cpus, bool all_real);

/* How many real CPUs those are. */
unsigned int cpu_nr_real(void);

/* Pin the calling thread to where CPU @cpu of the machine is. */
void cpu_pin(unsigned int cpu);

/*
 * What the final link joins from all kernels, in link order. The linker makes
 * these names of the sections'; see variant.lds.
 */
extern struct host_kernel *const __start_ream_kernels[];
extern struct host_kernel *const __stop_ream_kernels[];
extern char __start_percpu[], __stop_percpu[];
extern char __start_altinstructions[] __attribute__((weak));
extern char __stop_altinstructions[] __attribute__((weak));

/* kernel.c: the kernels linked into this program */

/* Patch alternatives, boot every kernel, make this thread its CPU 0. */
void kernel_boot_all(const struct host_machine *machine);

/* Give the calling thread its per-CPU area as CPU @cpu, in every kernel. */
void kernel_enter_cpu(unsigned int cpu);

/* How often all CPUs together have called a stand-in; exact when they idle. */
unsigned long kernel_nr_calls(const struct host_stub *stub);

/* traps.c */

/**
 * traps_install() - turn a kernel's faults into words
 * @forbidden_path: Lines "address variant symbol": addresses given to symbols
 *	that nobody defines. Reaching one ends the program with its name.
 */
void traps_install(const char *forbidden_path);

/* The same for a thread of the pool; a sample that is stuck is CPU 0's to report. */
void traps_enter_thread(void);

/**
 * traps_skip_interrupt_flag() - whether cli and sti are taken for no-operations
 * @skip: So from now on; else, as in the beginning, they are faults.
 *
 * A program may not touch the flag, and need not: no interrupt handler runs on
 * its threads. But each costs a signal: not in what is timed.
 */
void traps_skip_interrupt_flag(bool skip);

/* How many WARNs the kernels have raised so far; each was printed. */
unsigned int traps_nr_warnings(void);

/* watch.c: which sample is under way */

/**
 * struct watched - the sample that is under way, or was last
 * @row: Its row's name; NULL before the first.
 * @subject: The variant, or the limit.
 * @allowed_ns: How long it may take.
 * @slowest_ns: The slowest of its row before it; 0 = it is the first.
 */
struct watched {
	const char *row;
	const char *subject;
	uint64_t allowed_ns;
	uint64_t slowest_ns;
};

const struct watched *watch_now(void);

/* Seconds for the first sample of a row, and least seconds for others. */
void watch_set_patience(unsigned int first_s, unsigned int least_s);

/**
 * watch_begin() - from here on a sample is under way
 * @row: The row's name; has to last, as @subject has.
 * @subject: The variant's name, or the limit's.
 *
 * If it has not ended in time, SIGALRM ends the program. To be called outside
 * of the clock; a sample before it is over.
 */
void watch_begin(const char *row, const char *subject);

/* The sample is verified, and nothing of it is left but to print it. */
void watch_end(void);

/* reach.c: which functions the rows of a plan enter */

/**
 * reach_read() - have entries of functions watched
 * @path: Their addresses in this program, ascending, one a line.
 */
void reach_read(const char *path);

/* Before a sample, and after it. */
void reach_begin(void);
void reach_end(void);

/* A trap: whether it was at such an entry; then the function goes on. */
bool reach_meet(void *context);

/* Which of them, by number, were entered since this was last asked. */
void reach_print(const char *row);

/* fault.c */

/**
 * struct fault_cause - what is known of a fault besides its address
 * @symbol: The undefined symbol that was reached; NULL = none.
 * @file: Where the source has a BUG(); NULL = it is none.
 * @line: In @file.
 */
struct fault_cause {
	const char *symbol;
	const char *file;
	unsigned int line;
};

/* Learn what is code; before the first report. */
void fault_prepare(void);

/* Print where this thread is, as JSON; a signal handler's. @cause may be NULL. */
void fault_report(const siginfo_t *info, const void *context, const struct fault_cause *cause);

/* pool.c: the other CPUs */

/* Start a thread for each CPU but 0, which is the caller; all are in use. */
void pool_start(unsigned int nr_cpus);

/*
 * From now on jobs run on the first @nr_cpus CPUs only; 0 = on all. Without
 * it two jobs could share a real CPU while another idles.
 */
void pool_use(unsigned int nr_cpus);

/**
 * pool_run() - run a share of some work on each of several CPUs
 * @nr_threads: The caller and @nr_threads - 1 pool threads.
 * @run: Called as run(@context, index, @nr_threads), index 0 on the caller.
 */
void pool_run(unsigned int nr_threads,
	      void (*run)(void *context, unsigned int index, unsigned int nr),
	      void *context);

/* Send a signal to every pool thread that runs a job; how many there are. */
unsigned int pool_signal_running(int signal);

/* Forget who took part; then count the CPUs, the caller among them. */
void pool_reset_participants(void);
unsigned int pool_nr_participants(void);

/* turns.c: CPUs that run one at a time */

/* From now on they do; before pool_start(). */
void turns_begin(void);
bool turns_taken(void);

/* The calling thread is this CPU. The first turn is CPU 0's. */
void turns_enter(unsigned int cpu);

/* A CPU that was idle has something to do; the caller has the turn. */
void turns_make_ready(unsigned int cpu);

/* Wait until all others that are ready have had a turn; whether there were any. */
bool turns_yield(void);

/* What a kernel takes for the time. */
uint64_t turns_now_ns(void);

/* Let others have a turn; if there are none, that time has passed. */
void turns_sleep_for(uint64_t ns);

/* Wait for a turn, with nothing to do; @had_it: after giving the caller's own away. */
void turns_idle(bool had_it);

/* fill.c: the physical limit, writing the same bytes with nothing to think */

/* Wait until what this CPU has filled is on its way for good; of the architecture. */
void fill_drain(void);

/**
 * struct fill_range - the bytes an operation writes
 * @start: 64-byte aligned.
 * @block_bytes: Contiguous bytes of each block, a multiple of 64.
 * @stride_bytes: From one block to the next.
 * @nr_blocks: How many.
 */
struct fill_range {
	unsigned char *start;
	size_t block_bytes;
	size_t stride_bytes;
	size_t nr_blocks;
};

struct fill_kind {
	const char *name;
	bool streams;	/* leaves the target evicted */
	bool (*available)(void);
	void (*fill)(unsigned char *to, size_t bytes, uint64_t word);
};

/* The kinds that exist, ended by a NULL name; not all are available. */
extern const struct fill_kind fill_kinds[];

/* Fill a range with @nr_threads CPUs; drained when it returns. */
void fill_range(const struct fill_kind *kind, const struct fill_range *range,
		uint64_t word, unsigned int nr_threads);

/* arena.c: the memory that maps are made in */

#define ARENA_POISON 0xa5a5a5a5a5a5a5a5ULL

enum pre_state {
	PRE_EVICTED,	/* holds poison, no line of it in any cache */
	PRE_DIRTY,	/* holds poison, just written with cached stores */
	PRE_UNTOUCHED,	/* no page behind it yet; reads as zero */
};

struct arena {
	unsigned char *start;
	size_t bytes;
};

/* Reserve @bytes at @address, huge-page backed and touched. */
struct arena arena_map(uintptr_t address, size_t bytes, unsigned int nr_threads);

/* How much of the arena lies in huge pages, as the host's kernel says. */
size_t arena_huge_bytes(const struct arena *arena);

/* Bring the first @bytes of the arena into a pre-state. */
void arena_set_pre_state(const struct arena *arena, size_t bytes,
			 enum pre_state state, unsigned int nr_threads);

/**
 * struct image - what memory holds, or must hold
 * @start: Mapped read-only from the oracle's file; NULL if there is none.
 * @words: The same, of numbers.
 * @bytes: Its length; the image repeats after that.
 * @path: Of the file.
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
 * Whether @bytes from @start on are as the image; if not, says with @row and
 * @subject before it how @where differs: 64 bytes, and what they should be. If
 * @type is not NULL, it consists of structures of that type, of 64 bytes each.
 */
bool arena_is(const char *row, const char *subject, const char *where,
	      const char *type, const unsigned char *start, size_t bytes,
	      const struct image *image, unsigned int nr_threads);

/* Written beyond the map? So many bytes behind it must stay as they were. */
#define ARENA_GUARD_BYTES 65536UL

/* Fill the guard at @start. */
void arena_set_guard(unsigned char *start);

/* Whether all of it still holds @expected; if not, that is said. */
bool arena_guard_is_whole(const char *row, const char *subject, const unsigned char *start,
			  unsigned char expected);

/* say.c */

/*
 * Whether a structure holds what it should. If not, says with @who before it
 * which field does not, and after the field's name @of: which one it is.
 */
bool area_is_as_expected(const char *who, const char *of, const struct host_area *area);

/* The same of @areas, until one without a type; @subject of @row wrote them. */
bool areas_are_as_expected(const char *row, const char *subject, const char *of,
			   const struct host_area *areas);

/* caches.c */

/* Take every line of some memory out of all caches. */
void cache_evict(void *start, size_t bytes);

/* Read every line of some memory. */
void cache_touch(const void *start, size_t bytes);

/* random.c: splitmix64 */
uint64_t random_next(uint64_t *state);
void random_order(unsigned int *order, unsigned int nr, uint64_t *state);

#endif
