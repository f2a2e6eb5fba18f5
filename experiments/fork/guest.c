// SPDX-License-Identifier: GPL-2.0-only
/*
 * experiment=fork: the program /workloads/fork_folios, for one folio size after
 * another. What it says goes to the host as it is.
 *
 *   folios=KIB[,KIB...]   sizes, in this order; 4 is no folio's, but a page's
 *   size=BYTES            of the mapping
 *   rounds=N              of each size
 *   ops=OP[,OP...]        operations to time; all, if not given
 *   seed=N                for the order of mappings; 0, if not given
 *
 * The program reads settings and writes none: here they are written.
 */
#include <stdio.h>
#include "guest.h"

#define PROGRAM "/workloads/fork_folios"
#define NUMBER_BYTES 32

static void report_size(unsigned long number, const char *kib, int status)
{
	fprintf(message_begin("workload"), "{\"folio_kib\": %s, \"exit\": %d}",
		kib, status);
	message_end();
	printf("%s %lu folios of %s KiB\n", status ? "not ok" : "ok", number,
	       kib);
}

static bool run_fork(void)
{
	const char *sizes = needed_word("folios");
	const char *ops = word("ops"), *seed = word("seed");
	char bytes[NUMBER_BYTES], rounds[NUMBER_BYTES], kib[NUMBER_BYTES];
	unsigned long number = 0;
	bool ok = true;

	snprintf(bytes, sizeof(bytes), "%lu", number_word("size"));
	snprintf(rounds, sizeof(rounds), "%lu", number_word("rounds"));
	refuse_unread_words();
	printf("KTAP version 1\n1..%lu\n", count_names(sizes));
	while (next_name(&sizes, kib, sizeof(kib))) {
		const char *const argv[] = {
			PROGRAM, "--folio-kib", kib, "--bytes", bytes,
			"--rounds", rounds, "--check-contents", "--digest",
			"--seed", seed ? seed : "0",
			ops ? "--ops" : NULL, ops, NULL
		};
		int status;

		enable_folios(kib);
		status = run_heard(argv, "fork");
		report_size(++number, kib, status);
		ok &= !status;
	}
	return ok;
}

GUEST_EXPERIMENT("fork", run_fork)
