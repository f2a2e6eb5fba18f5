// SPDX-License-Identifier: GPL-2.0-only
/*
 * experiment=migrate: the program /workloads/move_folios, in one step after
 * another. Its output goes to the host unchanged.
 *
 *   steps=KIB/WHO/N[,...]  size of folios, what copies them, in how many parts:
 *                          dcbm on N channels of swdma, mtcopy in N threads,
 *                          or none/0, which is the kernel, folio by folio;
 *                          behind dcbm's N a model of a device: /SETUP_NS/MB_PER_S
 *   size=BYTES             of the buffer
 *   rounds=N               besides the first move
 *   path=PATH              of move_folios; move_pages, if not given
 *   from=N to=N            nodes; 0 and 1, if not given
 *   seed=N                 of the contents
 *   back=1                 odd rounds move the same buffer back
 *   adaptive=0             an engine copies even where the CPU is quicker
 *   reasons=NAMES          migrate reasons that are offloaded; default: the module's
 *   tier=1                 the pmem of region0 becomes memory, in a tier below
 *                          RAM; demotion is on
 *   balancing=1            NUMA balancing is on, and looks often
 *
 * experiment=migrate-soak: the program /workloads/migrate_soak.
 *
 *   size=BYTES             to migrate in all, at least
 *   seconds=N              for at least so long
 *   seed=N                 of all that is random
 *   phases=NAME[,...]      all, if not given
 *   step=N                 only every Nth fault of each kind
 *
 * Modules of /modules are loaded when they are first needed.
 */
#include <string.h>
#include "guest.h"

#define MOVE "/workloads/move_folios"
#define SOAK "/workloads/migrate_soak"
#define PROACTIVENESS "/proc/sys/vm/compaction_proactiveness"
#define DEMOTION "/sys/kernel/mm/numa/demotion_enabled"
#define BALANCING "/proc/sys/kernel/numa_balancing"
#define AUTO_ONLINE "/sys/devices/system/memory/auto_online_blocks"
#define DAX_DRIVERS "/sys/bus/dax/drivers"
#define SHRINK_UNDERUSED "/sys/kernel/mm/transparent_hugepage/shrink_underused"
#define SCAN "/sys/kernel/debug/sched/numa_balancing"

#define NUMBER_BYTES 32
#define STEP_BYTES 64
#define MOST_OPTIONS 24

/* --- Steps --- */

static void report_step(unsigned long number, const char *step, int status)
{
	FILE *to = message_begin("workload");

	fputs("{\"step\": ", to);
	message_text(to, step);
	fprintf(to, ", \"exit\": %d}", status);
	message_end();
	printf("%s %lu %s\n", status ? "not ok" : "ok", number, step);
}

static int run_step(const char *step, const char *const options[])
{
	const char *argv[MOST_OPTIONS] = { MOVE, "--folio-kib" };
	char words[STEP_BYTES], *rest = words;
	char *kib, *name, *parts;
	size_t nr = 2;
	FILE *to;

	snprintf(words, sizeof(words), "%s", step);
	kib = strsep(&rest, "/");
	name = strsep(&rest, "/");
	parts = strsep(&rest, "/");
	if (!name || !parts)
		give_up(0, "steps=: %s: not KIB/WHO/N", step);
	enable_folios(kib);
	copy_by(name, parts);
	if (!strcmp(name, "dcbm"))
		model_engine(rest);
	to = message_begin("step");
	message_text(to, step);
	message_end();
	argv[nr++] = kib;
	while (*options)
		argv[nr++] = *options++;
	return run_heard(argv, "migrate");
}

/* --- Settings --- */

/* A buffer is to be looked at in seconds, not in the minutes of a workload. */
static void set_up_balancing(void)
{
	set_text(BALANCING, "1");
	set_text(SCAN "/scan_delay_ms", "10");
	set_text(SCAN "/scan_period_min_ms", "10");
	set_text(SCAN "/scan_period_max_ms", "100");
}

/* By hand: daxctl looks for a module, and kmem is none. */
static void set_up_tier(void)
{
	static const char *const make[] = {
		"/usr/bin/ndctl", "create-namespace", "-f",
		"-e", "namespace0.0", "--mode=devdax", "--map=mem", NULL
	};

	prepare_pmem();
	if (run_program(make, CHILD_DEADLINE_S))
		give_up(0, "ndctl: no devdax of region0; the console says more");
	set_text(AUTO_ONLINE, "online");
	set_text(DAX_DRIVERS "/device_dax/unbind", "dax0.0");
	set_text(DAX_DRIVERS "/kmem/new_id", "dax0.0");
	set_text(DEMOTION, "1");
}

static bool run_migrate(void)
{
	const char *path = word("path"), *seed = word("seed");
	const char *from = word("from"), *to = word("to");
	const char *steps = needed_word("steps");
	char bytes[NUMBER_BYTES], rounds[NUMBER_BYTES], step[STEP_BYTES];
	const char *const options[] = {
		"--bytes", bytes, "--rounds", rounds, "--alone",
		"--from", from ? from : "0", "--to", to ? to : "1",
		"--path", path ? path : "move_pages",
		"--seed", seed ? seed : "1",
		word("back") ? "--back" : NULL, NULL
	};
	bool balancing = word("balancing"), tier = word("tier");
	unsigned long number = 0;
	bool ok = true;

	copy_words(NULL);
	snprintf(bytes, sizeof(bytes), "%lu", number_word("size"));
	snprintf(rounds, sizeof(rounds), "%lu", number_word("rounds"));
	refuse_unread_words();
	/* kcompactd migrates pages of its own accord, and nobody else is to. */
	set_text(PROACTIVENESS, "0");
	if (tier)
		set_up_tier();
	if (balancing)
		set_up_balancing();
	printf("KTAP version 1\n1..%lu\n", count_names(steps));
	while (next_name(&steps, step, sizeof(step))) {
		int status = run_step(step, options);

		report_step(++number, step, status);
		ok &= !status;
	}
	return ok;
}

static bool run_migrate_soak(void)
{
	const char *phases = word("phases"), *every = word("step");
	char bytes[NUMBER_BYTES], seconds[NUMBER_BYTES], seed[NUMBER_BYTES];
	const char *const argv[] = {
		SOAK, "--bytes", bytes, "--seconds", seconds, "--seed", seed,
		"--step", every ? every : "1",
		phases ? "--phases" : NULL, phases, NULL
	};
	int status;

	snprintf(bytes, sizeof(bytes), "%lu", number_word("size"));
	snprintf(seconds, sizeof(seconds), "%lu", number_word("seconds"));
	snprintf(seed, sizeof(seed), "%lu", number_word("seed"));
	refuse_unread_words();
	enable_folios(NULL);
	/*
	 * Or migrate_folio_move() queues a folio as wholly mapped which a fault
	 * has already queued as partially mapped: the base's race, of which
	 * debug kernels warn, in mm/huge_memory.c:deferred_split_folio().
	 */
	set_text(SHRINK_UNDERUSED, "0");
	printf("KTAP version 1\n1..1\n");
	status = run_heard(argv, "migrate");
	report_step(1, "soak", status);
	return !status;
}

GUEST_EXPERIMENT("migrate", run_migrate)

GUEST_EXPERIMENT("migrate-soak", run_migrate_soak)
