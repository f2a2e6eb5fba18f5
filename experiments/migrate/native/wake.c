// SPDX-License-Identifier: GPL-2.0-only
/* How late the host wakes a thread that sleeps until a device is done. */
#include <stdlib.h>
#include <sys/prctl.h>
#include "host.h"
#include "program.h"
#include "wake.h"

#define NR_SLEEPS 101
#define SLEEP_NS 100000UL

static int by_size(const void *a, const void *b)
{
	unsigned long one = *(const unsigned long *)a, other = *(const unsigned long *)b;

	return one < other ? -1 : one > other;
}

unsigned long wake_measure_ns(void)
{
	unsigned long late_ns[NR_SLEEPS];
	unsigned int word = 0;

	if (prctl(PR_SET_TIMERSLACK, 1UL))
		die(RUNNER_NO_RESOURCE, "cannot sleep to the nanosecond");
	for (unsigned int i = 0; i < NR_SLEEPS; i++) {
		uint64_t end_ns = now_ns() + SLEEP_NS, woken_ns;

		host_sleep_for(&word, 0, SLEEP_NS);
		woken_ns = now_ns();
		late_ns[i] = woken_ns > end_ns ? woken_ns - end_ns : 1;
	}
	qsort(late_ns, NR_SLEEPS, sizeof(late_ns[0]), by_size);
	return late_ns[NR_SLEEPS / 2];
}
