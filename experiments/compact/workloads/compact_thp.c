// SPDX-License-Identifier: GPL-2.0-only
/*
 * Huge pages where none is free, and so made by direct compaction: page faults
 * in memory that was advised to have them. Compiled with faults.c,
 * busy.c, holes.c, pressure.c, counters.c, cpu_times.c and program.c, statically.
 *
 *   compact_thp --huge N --bytes B --reserve B [--cpu C] [--seed S]
 *               [--hog PROGRAM]
 *
 * In turn, this
 *   makes B bytes of memory full of holes: of each 2 MiB block of physical
 *   memory every second page is given back;
 *   takes the other huge pages that are free as ballast, until faults have to
 *   wait for compaction;
 *   has faults give N huge pages, and times them. Zeroing is in the time;
 *   frees those and the ballast, and compares every word of what is left.
 *
 * All this on CPU C, which --hog PROGRAM, hog.c, wants during the
 * faults as well.
 *
 * The kernel kills this before other processes. It ends by itself, with exit
 * code 3 and so with all memory given back, as soon as less than --reserve
 * bytes are available or others wait for memory: pressure.c.
 *
 * Lines of JSON say how far it is; the last but one is the sample. Settings are
 * read by the kernel, never written here: transparent_hugepage/enabled must
 * allow madvise, and defrag that such a fault compacts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include "busy.h"
#include "counters.h"
#include "cpu_times.h"
#include "faults.h"
#include "holes.h"
#include "pressure.h"
#include "program.h"

#ifndef MADV_COLD
#define MADV_COLD 20
#endif

const char *const program_name = "compact_thp";

#define PROTOCOL_VERSION 1
#define MIB (1UL << 20)

/* Ballast leaves this much over the reserve, which others may take meanwhile. */
#define MARGIN_BYTES (32 * MIB)
#define LOOK_BLOCKS 8

/* Stalls in a row that prove ours; one may be of another process. */
#define ENOUGH_STALLS 2

/* Of the holes, the part that has to be in whole blocks of physical memory. */
#define WHOLE_PARTS 4
#define LEAST_WHOLE 3

/* Faults that may give small pages, of those asked for, and some besides. */
#define MISSES_SHARE 4
#define MORE_MISSES 16

struct options {
	unsigned long nr_huge;
	size_t nr_bytes;
	size_t reserve_bytes;
	unsigned long cpu;
	uint64_t seed;
	const char *hog;
};

/* --- Before the faults: holes, and nothing else --- */

/*
 * Whole blocks of physical memory, each from one huge page. MADV_DONTNEED of a
 * part of it would free nothing before the page is split, which it leaves to
 * reclaim; advice on a part that does not give it back has it split at once:
 * madvise_cold_or_pageout_pte_range() in mm/madvise.c. One after the other, so
 * that no more than one is held whole.
 */
static void make_holes(struct holes *holes, size_t nr_bytes)
{
	struct counters before, after;
	unsigned long nr_split;

	counters_read(&before);
	holes->nr_pages = nr_bytes / PAGE_BYTES;
	holes->at = (uint64_t *)map_huge(nr_bytes);
	for (size_t i = 0; i < holes->nr_pages; i += BLOCK_PAGES) {
		char *block = (char *)holes->at + i * PAGE_BYTES;

		fault_block(block);
		/* Before it is split: that frees pages that are all zeroes. */
		holes_write(holes, i, i + BLOCK_PAGES);
		if (madvise(block + PAGE_BYTES, PAGE_BYTES, MADV_COLD))
			die(EXIT_CANNOT_RUN, "MADV_COLD: %s", strerror(errno));
		holes_punch(holes, i, i + BLOCK_PAGES);
	}
	/* Or khugepaged would fill the holes. */
	madvise(holes->at, nr_bytes, MADV_NOHUGEPAGE);
	counters_read(&after);
	nr_split = counters_grown("thp_split_page", &before, &after);
	if (nr_split * WHOLE_PARTS < nr_bytes / BLOCK_BYTES * LEAST_WHOLE)
		die(EXIT_CANNOT_RUN,
		    "of %zu huge pages %lu were split; are as many free, and does transparent_hugepage/enabled allow them?",
		    nr_bytes / BLOCK_BYTES, nr_split);
	printf("{\"holes\":{\"bytes\":%zu,\"resident_pages\":%zu,\"split\":%lu}}\n",
	       nr_bytes, holes_nr_resident(holes), nr_split);
	fflush(stdout);
}

struct ballast {
	char *at;
	size_t room_bytes;	/* of address space */
	size_t nr_blocks;
	uint64_t time_ns;	/* of all faults that did not wait */
	size_t nr_plain;
};

static _Noreturn void too_much_ballast(const struct options *options,
				       const struct ballast *ballast)
{
	die(EXIT_CANNOT_RUN,
	    "%zu MiB in huge pages are free yet, with %zu MiB held and %zu MiB available; to take them would leave less than %zu MiB",
	    free_in_blocks() / MIB, ballast->nr_blocks * BLOCK_BYTES / MIB,
	    pressure_available_bytes() / MIB, options->reserve_bytes / MIB);
}

static void take_ballast(struct ballast *ballast, const struct options *options)
{
	unsigned int nr_stalls = 0;

	ballast->room_bytes = pressure_available_bytes() / BLOCK_BYTES *
			      BLOCK_BYTES;
	ballast->at = map_huge(ballast->room_bytes);
	while (nr_stalls < ENOUGH_STALLS) {
		size_t taken_bytes = ballast->nr_blocks * BLOCK_BYTES;
		struct fault fault;

		if (taken_bytes + BLOCK_BYTES > ballast->room_bytes ||
		    (!(ballast->nr_blocks % LOOK_BLOCKS) &&
		     pressure_available_bytes() < options->reserve_bytes +
						  MARGIN_BYTES))
			too_much_ballast(options, ballast);
		fault = fault_block(ballast->at + taken_bytes);
		ballast->nr_blocks++;
		if (fault.stalled) {
			nr_stalls++;
			continue;
		}
		if (!fault.is_huge)
			die(EXIT_CANNOT_RUN,
			    "a fault gave small pages and compacted nothing; does transparent_hugepage/defrag say madvise?");
		nr_stalls = 0;
		ballast->time_ns += fault.time_ns;
		ballast->nr_plain++;
	}
	printf("{\"ballast\":{\"bytes\":%zu,\"free_in_blocks\":%zu,\"available_bytes\":%zu}}\n",
	       ballast->nr_blocks * BLOCK_BYTES, free_in_blocks(),
	       pressure_available_bytes());
	fflush(stdout);
}

/* --- The faults --- */

struct sample {
	char *at;
	size_t room_bytes;
	unsigned long nr_allocated, nr_missed;
	unsigned long nr_stalled;	/* faults that had to wait for it */
	unsigned long nr_compacted;	/* huge pages that compaction gave */
	uint64_t time_ns, longest_ns;
	uint64_t elapsed_ns;		/* with what is between faults */
	size_t least_bytes;
	struct cpu_time began, ended;
	struct cpu_times machine_began, machine_ended;
	struct counters before, after;
};

static void take_sample(struct sample *sample, const struct options *options,
			const struct hog *hog)
{
	unsigned long most_missed = options->nr_huge / MISSES_SHARE +
				    MORE_MISSES;
	uint64_t began_ns;

	sample->room_bytes = (options->nr_huge + most_missed) * BLOCK_BYTES;
	sample->at = map_huge(sample->room_bytes);
	counters_read(&sample->before);
	sample->machine_began = cpu_times_now();
	sample->began = cpu_time_now(hog);
	began_ns = now_ns();
	while (sample->nr_allocated < options->nr_huge &&
	       sample->nr_missed < most_missed) {
		size_t block = sample->nr_allocated + sample->nr_missed;
		struct fault fault =
			fault_block(sample->at + block * BLOCK_BYTES);

		sample->time_ns += fault.time_ns;
		if (fault.time_ns > sample->longest_ns)
			sample->longest_ns = fault.time_ns;
		sample->nr_allocated += fault.is_huge;
		sample->nr_missed += !fault.is_huge;
		sample->nr_stalled += fault.stalled;
		sample->nr_compacted += fault.is_huge && fault.compacted;
	}
	sample->elapsed_ns = now_ns() - began_ns;
	sample->ended = cpu_time_now(hog);
	sample->machine_ended = cpu_times_now();
	counters_read(&sample->after);
	sample->least_bytes = pressure_least_bytes();
}

/* What others do is in the counters as well, so they can only say too much. */
static void check_counters(const struct sample *sample)
{
	unsigned long nr_alloc = counters_grown("thp_fault_alloc",
						&sample->before,
						&sample->after);

	if (nr_alloc < sample->nr_allocated)
		die(EXIT_NOT_VERIFIED,
		    "%lu faults gave huge pages, thp_fault_alloc counts %lu",
		    sample->nr_allocated, nr_alloc);
}

static void print_sample(const struct sample *sample,
			 const struct options *options,
			 const struct ballast *ballast,
			 const struct holes *holes)
{
	const struct cpu_time *began = &sample->began, *ended = &sample->ended;
	unsigned long long plain_ns = ballast->nr_plain ?
		ballast->time_ns / ballast->nr_plain : 0;

	printf("{\"compact\":{\"asked\":%lu,\"allocated\":%lu,",
	       options->nr_huge, sample->nr_allocated);
	printf("\"missed\":%lu,\"stalled\":%lu,\"compacted\":%lu,",
	       sample->nr_missed, sample->nr_stalled, sample->nr_compacted);
	printf("\"time_ns\":%llu,\"longest_ns\":%llu,\"elapsed_ns\":%llu,",
	       (unsigned long long)sample->time_ns,
	       (unsigned long long)sample->longest_ns,
	       (unsigned long long)sample->elapsed_ns);
	printf("\"plain_ns\":%llu,\"user_ns\":%llu,\"system_ns\":%llu,", plain_ns,
	       (unsigned long long)(ended->user_ns - began->user_ns),
	       (unsigned long long)(ended->system_ns - began->system_ns));
	if (options->hog)
		printf("\"hog_ns\":%llu,\"hog_iterations\":%llu,",
		       (unsigned long long)(ended->hog_ns - began->hog_ns),
		       (unsigned long long)(ended->iterations -
					    began->iterations));
	else
		printf("\"hog_ns\":null,\"hog_iterations\":null,");
	printf("\"holes_bytes\":%zu,\"ballast_bytes\":%zu,",
	       holes->nr_pages * PAGE_BYTES, ballast->nr_blocks * BLOCK_BYTES);
	printf("\"least_available_bytes\":%zu,\"resident_pages\":%zu,",
	       sample->least_bytes, holes_nr_resident(holes));
	fputs("\"machine\":", stdout);
	cpu_times_print(&sample->machine_began, &sample->machine_ended);
	fputs(",\"wrong_words\":0,\"counters\":", stdout);
	counters_print(&sample->before, &sample->after);
	puts("}}");
	fflush(stdout);
}

/* --- Words --- */

static void parse_options(struct options *options, char **argv)
{
	const struct word words[] = {
		{ "--huge", .number = &options->nr_huge },
		{ "--bytes", .number = &options->nr_bytes },
		{ "--reserve", .number = &options->reserve_bytes },
		{ "--cpu", .number = &options->cpu },
		{ "--seed", .number = &options->seed },
		{ "--hog", .text = &options->hog },
		{ }
	};

	read_words(argv, words, NULL, NULL);
	if (!options->nr_huge || options->nr_huge > 1UL << 24)
		die(EXIT_USAGE, "--huge %lu: 1 to %lu", options->nr_huge,
		    1UL << 24);
	if (!options->nr_bytes || options->nr_bytes % BLOCK_BYTES)
		die(EXIT_USAGE, "--bytes %zu: not a multiple of 2 MiB",
		    options->nr_bytes);
	if (!options->reserve_bytes)
		die(EXIT_USAGE, "--reserve B: missing");
	if (options->cpu >= CPU_SETSIZE)
		die(EXIT_USAGE, "--cpu %lu: 0 to %d", options->cpu,
		    CPU_SETSIZE - 1);
}

static void say_hello(const struct options *options)
{
	struct utsname kernel;

	uname(&kernel);
	printf("{\"hello\":{\"version\":%d,\"release\":\"%s\",\"huge\":%lu,",
	       PROTOCOL_VERSION, kernel.release, options->nr_huge);
	printf("\"bytes\":%zu,\"reserve\":%zu,\"cpu\":%lu,\"available\":%zu}}\n",
	       options->nr_bytes, options->reserve_bytes, options->cpu,
	       pressure_available_bytes());
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct options options = { .seed = 1 };
	struct holes holes = { .hole_every = 2 };
	struct ballast ballast = { 0 };
	struct sample sample = { 0 };
	struct holes_finding wrong;
	struct hog hog = { 0 };

	(void)argc;
	parse_options(&options, argv);
	holes.seed = options.seed;
	set_oom_score(1000);
	/* Before we bind ourselves: what watches runs where there is room. */
	pressure_watch(options.reserve_bytes);
	run_on_cpu(options.cpu);
	say_hello(&options);

	make_holes(&holes, options.nr_bytes);
	take_ballast(&ballast, &options);
	if (options.hog)
		hog_start(&hog, options.hog, options.cpu);
	take_sample(&sample, &options, &hog);
	if (options.hog)
		hog_end(&hog);
	munmap(sample.at, sample.room_bytes);
	munmap(ballast.at, ballast.room_bytes);
	wrong = holes_verify(&holes);
	munmap(holes.at, options.nr_bytes);
	pressure_over();

	if (wrong.nr_words)
		die(EXIT_NOT_VERIFIED,
		    "%zu words are not as they were written, the first is word %zu of page %zu",
		    wrong.nr_words, wrong.word, wrong.page);
	check_counters(&sample);
	print_sample(&sample, &options, &ballast, &holes);
	puts("{\"end\":{\"ok\":true}}");
	return EXIT_SUCCESS;
}
