/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One launch of any experiment: its command line, its kernels, and the lines of
 * JSON that it prints. The experiment itself defines what is measured.
 */
#ifndef REAM_LAUNCH_H
#define REAM_LAUNCH_H

#include "counters.h"
#include "marks.h"
#include "plan.h"
#include "program.h"

#define MOST_VARIANTS HOST_MOST_KERNELS	/* plan.py divides more into several programs */

/**
 * struct launch - state that every part of a launch may read
 * @number: Number of the launch, for the record.
 * @nr_cpus: Real CPUs in use.
 * @nr_hosted_cpus: CPUs that run kernel code. If there are more, they share the real ones.
 * @nr_variants: Number of kernels linked into this program.
 * @variant_names: Their names, in link order.
 * @tree_of: Tree that each was compiled from. Kernels of one tree with different
 *	facts count as kernels of different trees.
 * @nr_trees: Number of trees. A plan has every row once for each tree.
 * @variant: Variant of the current sample.
 * @is_warm_up: Whether that sample is a warm-up, neither counted nor printed.
 * @mapped_bytes: Size of the memory measured in.
 * @huge_bytes: Size of the part of it that huge pages back.
 * @seed: State of the generator that orders rounds.
 * @reaches: Whether entered functions are recorded, and nothing is timed.
 * @counts: Whether a plugin counts instructions of samples. CPUs then take turns,
 *	limits are left out, and each sample prints the number of its pair of marks.
 * @nr_marked: Number of pairs of marks so far.
 * @control_ppm: Millionths of its time by which the variant "control" is slowed;
 *	0 if there is none.
 */
struct launch {
	unsigned int number;
	unsigned int nr_cpus;
	unsigned int nr_hosted_cpus;
	unsigned int nr_variants;
	char *variant_names[MOST_VARIANTS];
	unsigned int tree_of[MOST_VARIANTS];
	unsigned int nr_trees;
	unsigned int variant;
	bool is_warm_up;
	size_t mapped_bytes;
	size_t huge_bytes;
	uint64_t seed;
	uint64_t control_ppm;
	bool reaches;
	bool counts;
	unsigned int nr_marked;
};

extern struct launch launch;

/**
 * struct experiment - what a runner adds to a launch
 * @name: Its name for `ream run`.
 * @addresses: Addresses that struct pages point to, for the oracle; ended by a
 *	NULL name. May be NULL.
 * @prepare: Map memory before any kernel is booted; may be NULL.
 * @map: Map what all rows together need.
 * @open_row: Allocate what one row needs besides its images, which are already
 *	mapped; may be NULL.
 * @close_row: Free that again; may be NULL.
 * @run_row: Run a row. The row of the first tree is followed by those of the
 *	other trees. Returns false if a sample was wrong, and has reported it
 *	then.
 * @end: Report numbers of the whole launch; may be NULL.
 */
struct experiment {
	const char *name;
	const struct host_fact *addresses;
	void (*prepare)(void);
	void (*map)(const void *rows, size_t nr_rows);
	void (*open_row)(void *row);
	void (*close_row)(void *row);
	bool (*run_row)(void *row);
	void (*end)(void);
};

/* Each runner defines its experiment. main() is in launch.c. */
extern const struct experiment experiment;

/**
 * struct row_layout - how a line of the plan is read into a row; see plan_row.h
 * @fields: Fields that a line may have.
 * @bytes: Size of the row that the functions above get.
 */
struct row_layout {
	const struct plan_field *fields;
	size_t bytes;
};

extern const struct row_layout row_layout;

/* The largest value of a member in @nr_rows rows. It is a size_t or unsigned long. */
#define launch_most(rows, nr_rows, member)				\
	launch_most_at(rows, nr_rows, offsetof(struct row, member))

static inline size_t launch_most_at(const void *rows, size_t nr_rows, size_t offset)
{
	const char *row = rows;
	size_t most = 0;

	for (size_t i = 0; i < nr_rows; i++, row += row_layout.bytes)
		most = max_size(most, *(const size_t *)(row + offset));
	return most;
}

/* The experiment's operations in the kernel of one variant. */
static inline const void *launch_ops(unsigned int variant)
{
	return __start_ream_kernels[variant]->ops;
}

/**
 * struct span - elapsed time and CPU time of an operation
 * @time_ns: Time by the monotonic clock.
 * @cpu_ns: CPU time of all threads of the program.
 *
 * Reading the CPU time is a system call, so it is outside of the two readings of
 * the clock. A thread that goes to sleep just after the end is not counted. One
 * that was woken before the start, and sleeps again within the span, is counted.
 * Both amount to microseconds.
 */
struct span {
	uint64_t time_ns;
	uint64_t cpu_ns;
};

static inline uint64_t cpu_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline struct span span_begin(void)
{
	uint64_t cpu_ns;

	counters_begin();
	cpu_ns = cpu_time_ns();
	if (launch.reaches)
		reach_begin();
	if (!launch.is_warm_up) {
		launch.nr_marked++;
		mark_begin();
	}
	return (struct span){ .time_ns = now_ns(), .cpu_ns = cpu_ns };
}

/* End a span: return the times since span_begin(). */
static inline struct span span_end(struct span begin)
{
	struct span span = { .time_ns = now_ns() - begin.time_ns };

	mark_end();
	if (launch.reaches)
		reach_end();
	span.cpu_ns = cpu_time_ns() - begin.cpu_ns;
	counters_end();
	return span;
}

/**
 * struct sample - one measured value, as it is recorded
 * @row: Name of the row.
 * @round: Number of the round within this launch.
 * @is_limit: Whether it is a limit of the hardware and not a variant.
 * @subject: Name of the variant or limit.
 * @nr_threads: Number of CPUs that took part.
 * @span: Elapsed time and CPU time.
 * @nr_bytes: Number of bytes that were processed.
 * @verified: Whether memory holds what it must.
 * @beside: Other numbers of the same operation, ended by a NULL name. NULL if none.
 */
struct sample {
	const char *row;
	unsigned int round;
	bool is_limit;
	const char *subject;
	unsigned int nr_threads;
	struct span span;
	size_t nr_bytes;
	bool verified;
	const struct host_fact *beside;
};

void launch_print_sample(const struct sample *sample);

/**
 * launch_stop_clock() - end the span of a variant's sample
 * @variant: Index of its kernel.
 * @begin: Result of span_begin() before the call.
 *
 * For the positive control, spin within the timed span until the sample is
 * slower by the requested share.
 *
 * Return: the times since span_begin().
 */
struct span launch_stop_clock(unsigned int variant, struct span begin);

/* Whether an earlier start of this launch has done this round of a row. */
bool launch_has_done(const char *row, unsigned int round);

/* End a round: all its samples were printed. Print the stubs that were reached so far. */
void launch_end_round(const char *row, unsigned int round);

/* Print a number of the whole launch at its end. @name must stay valid. */
void launch_tell(const char *name, unsigned long value);

/* Map memory to measure in at a fixed address, followed by @guard_bytes of guard. */
struct arena launch_map(uintptr_t address, size_t bytes, size_t guard_bytes);

/* Map memory at a fixed address that is so small that its page size does not matter. */
void *launch_map_small(uintptr_t address, size_t bytes);

#endif
