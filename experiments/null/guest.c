// SPDX-License-Identifier: GPL-2.0-only
/*
 * experiment=null: the program /workloads/getppid; what it says goes to the
 * host as it is.
 *
 *   calls=N   of each round
 *   rounds=N
 */
#include "guest.h"

static void hand_on(const char *line)
{
	fputs(line, message_begin("null"));
	message_end();
}

static bool run_null(void)
{
	const char *const argv[] = {
		"/workloads/getppid", needed_word("calls"), needed_word("rounds"), NULL
	};

	refuse_unread_words();
	return !run_heard(argv, hand_on);
}

GUEST_EXPERIMENT("null", run_null)
