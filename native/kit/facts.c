// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a shell cannot find out of a machine, as NAME=VALUE lines. The record of
 * a run elsewhere has the same numbers as one of a run here
 * (lab/ream/record/machine.py).
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TIMER_READS 2000
#define MOST_CPUS 8192
#define NS_PER_S 1000000000ULL

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t timer_step_ns(void)
{
	uint64_t smallest = NS_PER_S, last = now_ns();

	for (int i = 0; i < TIMER_READS; i++) {
		uint64_t now = now_ns();

		if (now > last && now - last < smallest)
			smallest = now - last;
		last = now;
	}
	return smallest;
}

static int nr_usable_cpus(void)
{
	size_t bytes = CPU_ALLOC_SIZE(MOST_CPUS);
	cpu_set_t *set = CPU_ALLOC(MOST_CPUS);
	int nr;

	if (!set || sched_getaffinity(0, bytes, set))
		return 1;
	nr = CPU_COUNT_S(bytes, set);
	CPU_FREE(set);
	return nr;
}

int main(void)
{
	printf("nr_cpus=%ld\n", sysconf(_SC_NPROCESSORS_ONLN));
	printf("nr_usable_cpus=%d\n", nr_usable_cpus());
	printf("timer_step_ns=%llu\n", (unsigned long long)timer_step_ns());
	printf("ticks_per_s=%ld\n", sysconf(_SC_CLK_TCK));
	return EXIT_SUCCESS;
}
