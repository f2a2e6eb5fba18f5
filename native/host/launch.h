/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One launch of any experiment: its command line, its kernels, and the lines
 * of JSON it prints. What is measured is the experiment's own.
 */
#ifndef REAM_LAUNCH_H
#define REAM_LAUNCH_H

#include "counters.h"
#include "marks.h"
#include "plan.h"
#include "program.h"

#define MOST_VARIANTS HOST_MOST_KERNELS	/* plan.py makes several programs of more */

/**
 * struct launch - what every part of a launch may read
 * @number: The launch's, for the record.
 * @nr_cpus: Real CPUs in use.
 * @nr_hosted_cpus: CPUs that run kernel code; more than real ones share those.
 * @nr_variants: Kernels linked into this program.
 * @variant_names: In link order.
 * @tree_of: Which tree each was compiled from; all the first, if there is one.
 *	A kernel with other facts than the others of its tree counts as another.
 * @nr_trees: How many trees there are. A plan has every row once for each.
 * @variant: Whose sample is under way.
 * @is_warm_up: Whether that is one which is neither counted nor printed.
 * @mapped_bytes: Memory measured in.
 * @huge_bytes: How much of that lay in huge pages.
 * @seed: State of the generator that orders rounds.
 * @reaches: Whether functions that are entered are noted, and nothing is timed.
 * @counts: Whether a plugin counts what samples execute: then CPUs take turns,
 *	limits are left out, and each sample says which pair of marks it is of.
 * @nr_marked: Pairs of marks so far.
 * @control_ppm: Millionths of its time by which the variant "control" is slowed;
 *	0 = there is none.
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
 * @name: As `ream run` has it.
 * @addresses: Where it puts what descriptors point to, for the oracle; ended
 *	by a NULL name. May be NULL.
 * @prepare: Map memory before any kernel is booted; may be NULL.
 * @map: Map what all rows together need.
 * @open_row: Get what one row needs besides its images, which are mapped; may
 *	be NULL.
 * @close_row: Give that back; may be NULL.
 * @run_row: Do what a row says. It is the first tree's; behind it is that of
 *	every other. Returns false if a sample was not what it must be; that has
 *	been said then.
 * @end: Say what is of the whole launch; may be NULL.
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

/* Each runner defines it; main() is in launch.c. */
extern const struct experiment experiment;

/**
 * struct row_layout - how a line of the plan becomes a row; see plan_row.h
 * @fields: What a line may say.
 * @bytes: Size of what that is read into, the row of the functions above.
 */
struct row_layout {
	const struct plan_field *fields;
	size_t bytes;
};

extern const struct row_layout row_layout;

/* The largest value of a member, size_t or unsigned long, in any of @nr_rows rows. */
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

/* The experiment's operations of one variant's kernel. */
static inline const void *launch_ops(unsigned int variant)
{
	return __start_ream_kernels[variant]->ops;
}

/**
 * struct span - how long something took, and of how many CPUs
 * @time_ns: By the monotonic clock.
 * @cpu_ns: CPU time of all threads of the program.
 *
 * What reads the CPU time asks the host's kernel, so it stands outside of the
 * two readings of the clock. A thread that falls asleep just after the end is
 * not counted any more, one that was woken before the start and sleeps again
 * within the span is: microseconds.
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

/* From the beginning to now. */
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
 * struct sample - one measured value, as the record has it
 * @row: The row's name.
 * @round: Within this launch.
 * @is_limit: A bound of the hardware's, not a variant.
 * @subject: The variant's name, or the bound's.
 * @nr_threads: CPUs that took part.
 * @span: How long it took.
 * @nr_bytes: Bytes of memory it was about.
 * @verified: Whether memory holds what it must.
 * @beside: Other numbers of the same operation, ended by a NULL name; NULL = none.
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
 * launch_stop_clock() - how long a variant's sample took
 * @variant: Index of its kernel.
 * @begin: span_begin() before the call.
 *
 * Of the positive control, waits inside the clock until the sample has taken
 * the share longer that was asked for.
 *
 * Return: from the beginning to now.
 */
struct span launch_stop_clock(unsigned int variant, struct span begin);

/* Whether an earlier start of this launch has done this round of a row. */
bool launch_has_done(const char *row, unsigned int round);

/* Every sample of this round is out, and the stubs that were reached by now. */
void launch_end_round(const char *row, unsigned int round);

/* Have a number of the whole launch told at its end; @name has to last. */
void launch_tell(const char *name, unsigned long value);

/* Memory at a fixed address that is measured in; @guard_bytes behind it are not. */
struct arena launch_map(uintptr_t address, size_t bytes, size_t guard_bytes);

/* Memory at a fixed address, small enough not to care for its pages' size. */
void *launch_map_small(uintptr_t address, size_t bytes);

#endif
