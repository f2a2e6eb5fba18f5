// SPDX-License-Identifier: GPL-2.0-only
/*
 * experiment=programs: the programs run=PATH[,PATH...] run one after another.
 * Each line of JSON that one prints is a message of kind "step"; a message of
 * kind "begins" comes before those of each. With swap=DEVICE they find that
 * block device in use for swap.
 */
#include "guest.h"

static bool run_programs(void)
{
	const char *programs = needed_word("run");
	const char *swap = word("swap");
	char name[PATH_BYTES];

	refuse_unread_words();
	if (swap)
		use_swap(swap);
	while (next_name(&programs, name, sizeof(name))) {
		const char *const argv[] = { name, NULL };

		message_text(message_begin("begins"), name);
		message_end();
		/* How it ends, its lines say. */
		run_heard(argv, "step");
	}
	return true;
}

GUEST_EXPERIMENT("programs", run_programs)
