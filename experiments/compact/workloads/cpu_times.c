// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <unistd.h>
#include "cpu_times.h"
#include "program.h"

#define NS_PER_S 1000000000ULL

struct cpu_times cpu_times_now(void)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq;
	unsigned long long steal, tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);
	FILE *file = fopen("/proc/stat", "re");

	if (!file || fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu",
			    &user, &nice, &system, &idle, &iowait, &irq,
			    &softirq, &steal) != 8)
		die(EXIT_CANNOT_RUN, "/proc/stat: no times of all CPUs");
	fclose(file);
	return (struct cpu_times){
		.user_ns = (user + nice) * tick_ns,
		.system_ns = (system + irq + softirq) * tick_ns,
		.idle_ns = (idle + iowait) * tick_ns,
		.steal_ns = steal * tick_ns,
	};
}

static unsigned long long grown(uint64_t before, uint64_t after)
{
	/* Idle times of different CPUs are not read at once, and may go back. */
	return after > before ? after - before : 0;
}

void cpu_times_print(const struct cpu_times *before,
		     const struct cpu_times *after)
{
	printf("{\"user_ns\":%llu,\"system_ns\":%llu,",
	       grown(before->user_ns, after->user_ns),
	       grown(before->system_ns, after->system_ns));
	printf("\"idle_ns\":%llu,\"steal_ns\":%llu}",
	       grown(before->idle_ns, after->idle_ns),
	       grown(before->steal_ns, after->steal_ns));
}
