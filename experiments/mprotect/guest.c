// SPDX-License-Identifier: GPL-2.0-only
/*
 * experiment=mprotect: the program /workloads/mprotect_folios, for one job after
 * another. What it says goes to the host as it is.
 *
 *   runs=JOB[,JOB...]     KIB:MEMORY:CALL:CALLS:EVERY:ORDER:TO, values of its
 *                         options --folio-kib to --to, in this order
 *   rounds=N              of each job
 *   seed=N                for contents and orders
 *
 * The program reads settings and writes none: here they are written.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "guest.h"

#define PROGRAM "/workloads/mprotect_folios"
#define THP "/sys/kernel/mm/transparent_hugepage"
#define NUMBER_BYTES 32
#define JOB_BYTES 128

static const char *const options[] = {
	"--folio-kib", "--memory", "--call-bytes", "--calls", "--every",
	"--map-order", "--to",
};

#define NR_OPTIONS (sizeof(options) / sizeof(options[0]))

/* What enable_folios() does for memory that is shared. */
static void enable_shared(const char *kib)
{
	char wanted[PATH_BYTES], path[PATH_BYTES];
	struct dirent *entry;
	DIR *sizes = opendir(THP);

	if (!sizes)
		give_up(errno, "open %s: a kernel without huge pages", THP);
	snprintf(wanted, sizeof(wanted), "hugepages-%skB", kib);
	while ((entry = readdir(sizes))) {
		snprintf(path, sizeof(path), THP "/%s/shmem_enabled",
			 entry->d_name);
		if (entry->d_name[0] != '.' && !access(path, F_OK))
			set_text(path, strcmp(entry->d_name, wanted) ? "never" :
				 "advise");
	}
	closedir(sizes);
}

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
	enable_shared(argv[8]);
	return run_heard(argv, "mprotect");
}

static bool run_mprotect(void)
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

GUEST_EXPERIMENT("mprotect", run_mprotect)
