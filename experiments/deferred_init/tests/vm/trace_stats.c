// SPDX-License-Identifier: GPL-2.0-only
/*
 * Print how many events were traced on CPU 0 since boot, kept or overwritten:
 *
 *   trace_events=N
 */
#include <stdio.h>

#define STATS "/sys/kernel/debug/tracing/per_cpu/cpu0/stats"

int main(void)
{
	unsigned long nr_events = 0, nr;
	FILE *file = fopen(STATS, "r");
	char line[128];

	if (!file) {
		perror("Bail out! " STATS);
		return 1;
	}
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "entries: %lu", &nr) == 1 ||
		    sscanf(line, "overrun: %lu", &nr) == 1)
			nr_events += nr;
	fclose(file);
	printf("trace_events=%lu\n", nr_events);
	return 0;
}
