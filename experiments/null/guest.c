// SPDX-License-Identifier: GPL-2.0-only
/*
 * experiment=null: the program /workloads/getppid; what it says goes to the
 * host as it is.
 *
 *   calls=N   of each round
 *   rounds=N
 */
#include "guest.h"

static bool run_null(void)
{
	const char *const argv[] = {
		"/workloads/getppid", needed_word("calls"), needed_word("rounds"), NULL
	};

	refuse_unread_words();
	return !run_heard(argv, "null");
}

GUEST_EXPERIMENT("null", run_null)
