// SPDX-License-Identifier: GPL-2.0-only
/*
 * experiment=mremap: the program /workloads/mremap_folios, for one job after
 * another. What it says goes to the host as it is.
 *
 *   runs=JOB[,JOB...]     KIB:LAYOUT:CALL:CALLS:EVERY:ORDER, values of its
 *                         options --folio-kib to --map-order, in this order
 *   rounds=N              of each job
 *   seed=N                for contents and orders
 *
 * The program reads settings and writes none: here they are written.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include "guest.h"

#define PROGRAM "/workloads/mremap_folios"
#define NUMBER_BYTES 32
#define JOB_BYTES 128

static const char *const options[] = {
	"--folio-kib", "--layout", "--call-bytes", "--calls", "--every",
	"--map-order",
};

#define NR_OPTIONS (sizeof(options) / sizeof(options[0]))

static int run_job(const char *job, const char *rounds, const char *seed)
{
	const char *argv[7 + 2 * NR_OPTIONS + 1] = {
		PROGRAM, "--run", job, "--rounds", rounds, "--seed", seed,
	};
	char copy[JOB_BYTES], *left = copy;

	snprintf(copy, sizeof(copy), "%s", job);
	for (size_t i = 0; i < NR_OPTIONS; i++) {
		argv[7 + 2 * i] = options[i];
		argv[8 + 2 * i] = strsep(&left, ":");
		if (!argv[8 + 2 * i])
			give_up(0, "runs: %s lacks %s", job, options[i]);
	}
	if (left)
		give_up(0, "runs: of %s, %s is too much", job, left);
	enable_folios(argv[8]);
	return run_heard(argv, "mremap");
}

static bool run_mremap(void)
{
	const char *jobs = needed_word("runs"), *seed = needed_word("seed");
	char rounds[NUMBER_BYTES], job[JOB_BYTES];
	unsigned long number = 0;
	bool ok = true;

	snprintf(rounds, sizeof(rounds), "%lu", number_word("rounds"));
	refuse_unread_words();
	printf("KTAP version 1\n1..%lu\n", count_names(jobs));
	while (next_name(&jobs, job, sizeof(job))) {
		int status = run_job(job, rounds, seed);

		fprintf(message_begin("workload"),
			"{\"run\": \"%s\", \"exit\": %d}", job, status);
		message_end();
		printf("%s %lu %s\n", status ? "not ok" : "ok", ++number, job);
		ok &= !status;
	}
	return ok;
}

GUEST_EXPERIMENT("mremap", run_mremap)
