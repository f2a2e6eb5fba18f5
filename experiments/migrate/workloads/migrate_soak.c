// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that several processes move between two nodes while they write it and
 * fork, and while the provider that copies it fails, changes or goes away. For a guest:
 * it loads and unloads modules, and changes the kernel's settings. Compiled
 * with soak_worker.c, soak_kernel.c, nodes.c and program.c, statically.
 *
 *   migrate_soak [--bytes B] [--seconds S] [--seed N] [--workers W]
 *                [--phases faults,random] [--step N]
 *
 *   faults   each fault of swdma, in a random order: the k-th descriptor fails,
 *            is short, stalls or takes its channel away, for every k from 1 to
 *            64, or every Nth; then as many descriptors complete out of order
 *   random   what copies, in how many parts, for whom, with which faults, is
 *            changed at random moments; modules are unloaded and loaded
 *
 * A phase that needs a module which is not in /modules is left out, and said.
 * Random changes go on until B bytes have been moved, and S seconds are over.
 * Every byte is compared after each move: a wrong one ends all with exit 5.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "nodes.h"
#include "program.h"
#include "soak.h"

const char *const program_name = "migrate_soak";

#define MOST_FAULT 64
#define FAULT_DEADLINE_NS (120 * 1000000000ULL)
#define FAULT_AGAIN_NS (2 * 1000000000ULL)
#define REPORT_NS (5 * 1000000000ULL)
#define PAUSE_NS 2000000
#define LONGEST_PAUSE_NS 40000000

struct options {
	unsigned long bytes;
	unsigned long seconds;
	unsigned long workers;
	unsigned long step;
	uint64_t seed;
	const char *phases;
};

static pid_t workers[MOST_WORKERS];
static struct totals *totals;	/* shared, one for each worker */
static const struct options *asked;

/* --- Workers --- */

static void start_workers(const struct options *options)
{
	for (unsigned long i = 0; i < options->workers; i++) {
		workers[i] = fork();
		if (workers[i] < 0)
			die(EXIT_FAILED, "fork: %s", strerror(errno));
		if (!workers[i])
			work(i, options->seed, &totals[i]);
	}
}

static void stop_workers(void)
{
	for (unsigned long i = 0; i < asked->workers; i++)
		kill(workers[i], SIGKILL);
	for (unsigned long i = 0; i < asked->workers; i++)
		waitpid(workers[i], NULL, 0);
}

/* A worker never ends of its own accord but for a reason. */
static void check_workers(void)
{
	int status;
	pid_t ended = waitpid(-1, &status, WNOHANG);

	if (ended <= 0)
		return;
	/* It has said what was wrong. */
	exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) :
							EXIT_FAILED);
}

static struct totals sum(void)
{
	struct totals all = { 0 };

	for (unsigned long i = 0; i < asked->workers; i++) {
		all.bytes += __atomic_load_n(&totals[i].bytes,
					     __ATOMIC_RELAXED);
		all.moves += __atomic_load_n(&totals[i].moves,
					     __ATOMIC_RELAXED);
		all.forks += __atomic_load_n(&totals[i].forks,
					     __ATOMIC_RELAXED);
		all.writes += __atomic_load_n(&totals[i].writes,
					      __ATOMIC_RELAXED);
	}
	return all;
}

/* --- Words to the lab --- */

static unsigned long nr_changes, nr_faults[NR_FAULTS];

static void print_totals(const char *name, const char *ok)
{
	struct totals all = sum();

	printf("{\"%s\":{%s\"bytes\":%lu,\"moves\":%lu,\"forks\":%lu,", name, ok,
	       all.bytes, all.moves, all.forks);
	printf("\"writes\":%lu,\"changes\":%lu", all.writes, nr_changes);
	for (size_t i = 0; i < NR_FAULTS; i++)
		printf(",\"%s\":%lu", faults[i].name, nr_faults[i]);
	printf(",\"dcbm\":%lu,\"mtcopy\":%lu}}\n", nr_folios_copied("dcbm"),
	       nr_folios_copied("mtcopy"));
	fflush(stdout);
}

static void rest(uint64_t ns)
{
	const struct timespec interval = { .tv_nsec = (long)ns };
	static uint64_t said_ns;

	nanosleep(&interval, NULL);
	check_workers();
	if (now_ns() - said_ns < REPORT_NS)
		return;
	said_ns = now_ns();
	print_totals("progress", "");
}

/* --- Phases --- */

static bool wanted(const char *phase)
{
	const char *at = asked->phases ? strstr(asked->phases, phase) : NULL;

	return !asked->phases || at;
}

static void leave_out(const char *phase, const char *module)
{
	printf("{\"cannot\":{\"phase\":\"%s\",\"why\":\"no /modules/%s.ko\"}}\n",
	       phase, module);
	fflush(stdout);
}

/*
 * Until the chosen descriptor has come, or as many have, in any order. Channels
 * whose time is over are not used again, and it may be among what they have
 * dropped: so begin anew from time to time, with all channels.
 */
static void wait_for_fault(size_t kind, unsigned int k)
{
	const char *counter = faults[kind].counted ? "faults" : "descriptors";
	unsigned long enough = read_parameter("swdma", counter);
	uint64_t began_ns = now_ns(), tried_ns = began_ns;

	enough += faults[kind].counted ? 1 : k;
	begin_fault(kind, k);
	while (read_parameter("swdma", counter) < enough) {
		rest(PAUSE_NS);
		if (now_ns() - tried_ns > FAULT_AGAIN_NS) {
			end_fault(kind);
			begin_fault(kind, k);
			tried_ns = now_ns();
		}
		if (now_ns() - began_ns > FAULT_DEADLINE_NS)
			die(EXIT_FAILED,
			    "%s=%u: the engine has not come so far in %llu s",
			    faults[kind].name, k, FAULT_DEADLINE_NS / 1000000000);
	}
	end_fault(kind);
	nr_faults[kind]++;
}

static void run_faults(const struct options *options, uint64_t *chance)
{
	size_t each = MOST_FAULT / options->step, count = NR_FAULTS * each;
	unsigned int order[NR_FAULTS * MOST_FAULT];

	use_engine(chance);
	for (size_t i = 0; i < count; i++) {
		size_t at = below(chance, i + 1);

		order[i] = order[at];
		order[at] = i;
	}
	for (size_t i = 0; i < count; i++)
		wait_for_fault(order[i] / each,
			       order[i] % each * options->step + 1);
}

static void run_random(const struct options *options, uint64_t *chance)
{
	uint64_t end_ns = now_ns() + options->seconds * 1000000000ULL;

	while (now_ns() < end_ns || sum().bytes < options->bytes) {
		change_something(chance);
		nr_changes++;
		rest(below(chance, LONGEST_PAUSE_NS));
	}
}

/* --- Words from the lab --- */

static void parse_options(struct options *options, char **argv)
{
	const struct word words[] = {
		{ "--bytes", .number = &options->bytes },
		{ "--seconds", .number = &options->seconds },
		{ "--seed", .number = &options->seed },
		{ "--workers", .number = &options->workers },
		{ "--step", .number = &options->step },
		{ "--phases", .text = &options->phases },
		{ }
	};

	read_words(argv, words, NULL, NULL);
	if (!options->workers || options->workers > MOST_WORKERS)
		die(EXIT_USAGE, "--workers %lu: 1 to %d", options->workers,
		    MOST_WORKERS);
	if (!options->step || options->step > MOST_FAULT)
		die(EXIT_USAGE, "--step %lu: 1 to %d", options->step,
		    MOST_FAULT);
}

int main(int argc, char **argv)
{
	struct options options = {
		.bytes = 1UL << 30, .seconds = 10, .seed = 1, .workers = 4,
		.step = 1,
	};
	uint64_t chance;

	(void)argc;
	parse_options(&options, argv);
	asked = &options;
	chance = mixed(options.seed);
	nodes_require(0, 1);
	totals = mmap(NULL, MOST_WORKERS * sizeof(*totals),
		      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (totals == MAP_FAILED)
		die(EXIT_FAILED, "map totals: %s", strerror(errno));
	start_workers(&options);
	if (!has_engine())
		leave_out("faults", "dcbm");
	else if (wanted("faults"))
		run_faults(&options, &chance);
	if (wanted("random"))
		run_random(&options, &chance);
	stop_workers();
	leave_off();
	print_totals("end", "\"ok\":true,");
	return EXIT_SUCCESS;
}
