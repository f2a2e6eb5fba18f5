// SPDX-License-Identifier: GPL-2.0-only
/* getppid CALLS ROUNDS: time so many system calls, which do nothing, each round. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv)
{
	long calls = argc == 3 ? atol(argv[1]) : 0;
	long rounds = argc == 3 ? atol(argv[2]) : 0;
	const long parent = getppid();

	for (long round = 0; round < rounds; round++) {
		long long start_ns = now_ns();
		long right = 0;

		for (long i = 0; i < calls; i++)
			right += syscall(SYS_getppid) == parent;
		printf("{\"round\": %ld, \"time_ns\": %lld, \"verified\": %s}\n", round,
		       now_ns() - start_ns, right == calls ? "true" : "false");
	}
	puts("{\"end\":{\"ok\":true}}");
	return EXIT_SUCCESS;
}
