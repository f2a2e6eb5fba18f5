// SPDX-License-Identifier: GPL-2.0-only
/* getppid CALLS ROUNDS: time so many system calls, which do nothing, each round. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/syscall.h>
#include "program.h"

const char *const program_name = "getppid";

int main(int argc, char **argv)
{
	long calls = argc == 3 ? atol(argv[1]) : 0;
	long rounds = argc == 3 ? atol(argv[2]) : 0;
	const long parent = getppid();

	for (long round = 0; round < rounds; round++) {
		struct timed timed;
		long right = 0;

		timed_begin(&timed);
		for (long i = 0; i < calls; i++)
			right += syscall(SYS_getppid) == parent;
		timed_end(&timed);
		printf("{\"round\":%ld,\"verified\":%s,", round, right == calls ? "true" : "false");
		timed_print(&timed);
		puts("}");
	}
	puts("{\"end\":{\"ok\":true}}");
	return EXIT_SUCCESS;
}
