// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples of given lengths, for tests of what the next one may take: words
 * ROW:MILLISECONDS. Prints what each was allowed; a "stuck" one never ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "program.h"

static void wait_ms(unsigned long ms)
{
	uint64_t until_ns = now_ns() + ms * 1000000;

	while (now_ns() < until_ns)
		;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	watch_set_patience((unsigned int)atoi(argv[1]), (unsigned int)atoi(argv[2]));
	for (int i = 3; i < argc; i++) {
		char *length = strchr(argv[i], ':');

		*length++ = '\0';
		watch_begin(argv[i], "variant");
		printf("%lu\n", (unsigned long)watch_now()->allowed_ns);
		while (!strcmp(length, "stuck"))
			;
		wait_ms(strtoul(length, NULL, 10));
		watch_end();
	}
	return 0;
}
