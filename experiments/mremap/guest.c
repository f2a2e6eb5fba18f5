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
#include <stddef.h>
#include "guest.h"

static bool run_mremap(void)
{
	static const char *const options[] = {
		"--folio-kib", "--layout", "--call-bytes", "--calls", "--every",
		"--map-order", NULL
	};
	const struct jobs jobs = {
		"/workloads/mremap_folios", "mremap", options, enable_folios,
	};

	return run_jobs(&jobs);
}

GUEST_EXPERIMENT("mremap", run_mremap)
