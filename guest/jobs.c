// SPDX-License-Identifier: GPL-2.0-only
/* A program of the live stage, for one job after another. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include "guest.h"

#define NUMBER_BYTES 32
#define JOB_BYTES 128
#define NR_FIRST 7
#define MOST_OPTIONS 8

static int run_job(const struct jobs *jobs, const char *job, const char *rounds,
		   const char *seed)
{
	const char *argv[NR_FIRST + 2 * MOST_OPTIONS + 1] = {
		jobs->program, "--run", job, "--rounds", rounds, "--seed", seed,
	};
	char copy[JOB_BYTES], *left = copy;

	snprintf(copy, sizeof(copy), "%s", job);
	for (size_t i = 0; i < MOST_OPTIONS && jobs->options[i]; i++) {
		const char *value = strsep(&left, ":");

		if (!value)
			give_up(0, "runs: %s lacks %s", job, jobs->options[i]);
		argv[NR_FIRST + 2 * i] = jobs->options[i];
		argv[NR_FIRST + 2 * i + 1] = value;
	}
	if (left)
		give_up(0, "runs: of %s, %s is too much", job, left);
	jobs->enable(argv[NR_FIRST + 1]);
	return run_heard(argv, jobs->name);
}

bool run_jobs(const struct jobs *its)
{
	const char *jobs = needed_word("runs"), *seed = needed_word("seed");
	char rounds[NUMBER_BYTES], job[JOB_BYTES];
	unsigned long number = 0;
	bool ok = true;

	snprintf(rounds, sizeof(rounds), "%lu", number_word("rounds"));
	refuse_unread_words();
	printf("KTAP version 1\n1..%lu\n", count_names(jobs));
	while (next_name(&jobs, job, sizeof(job))) {
		int status = run_job(its, job, rounds, seed);

		fprintf(message_begin("workload"),
			"{\"run\": \"%s\", \"exit\": %d}", job, status);
		message_end();
		printf("%s %lu %s\n", status ? "not ok" : "ok", ++number, job);
		ok &= !status;
	}
	return ok;
}
