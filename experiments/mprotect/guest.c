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

#define THP "/sys/kernel/mm/transparent_hugepage"

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

static void enable(const char *kib)
{
	enable_folios(kib);
	enable_shared(kib);
}

static bool run_mprotect(void)
{
	static const char *const options[] = {
		"--folio-kib", "--memory", "--call-bytes", "--calls", "--every",
		"--map-order", "--to", NULL
	};
	const struct jobs jobs = {
		"/workloads/mprotect_folios", "mprotect", options, enable,
	};

	return run_jobs(&jobs);
}

GUEST_EXPERIMENT("mprotect", run_mprotect)
