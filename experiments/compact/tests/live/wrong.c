// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel, a machine and memory that are other than they should be, each if
 * REAM_WRONG names it: the workload has to notice.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "wrong.h"

static bool is_wrong(const char *what)
{
	const char *words = getenv("REAM_WRONG");

	return words && strstr(words, what);
}

/*
 * Every fault had to wait, so that no ballast is taken to speak of. Where the
 * watch is to notice something, it has the time: fragmented memory ends the
 * ballast, and with it the program, after a few faults.
 */
struct fault __wrap_fault_block(char *block)
{
	const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };
	struct fault fault = __real_fault_block(block);

	if (is_wrong("pressure") || is_wrong("taken"))
		nanosleep(&pause, NULL);

	if (is_wrong("stalls")) {
		fault.stalled = true;
		fault.compacted = true;
	}
	return fault;
}

/* A page that has moved lost one word on its way. */
struct holes_finding __wrap_holes_verify(const struct holes *holes)
{
	if (is_wrong("word"))
		holes->at[2 * PAGE_WORDS + 7] ^= 1;
	return __real_holes_verify(holes);
}

/* A kernel that gives huge pages and does not count them. */
unsigned long __wrap_counters_grown(const char *name,
				    const struct counters *before,
				    const struct counters *after)
{
	if (is_wrong("counter") && !strcmp(name, "thp_fault_alloc"))
		return 0;
	return __real_counters_grown(name, before, after);
}

/*
 * Others wait for memory all the time, or have taken all that there was. Of the
 * latter the watch learns alone: the ballast has another reason to end.
 */
ssize_t __wrap_pread(int fd, void *text, size_t room, off_t from)
{
	ssize_t got = __real_pread(fd, text, room, from);
	struct timespec now;

	if (got > 0 && is_wrong("pressure") && !strncmp(text, "some", 4)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		return snprintf(text, room, "some total=%lld\n",
				now.tv_sec * 1000000LL + now.tv_nsec / 1000);
	}
	if (got > 0 && is_wrong("taken") && !strncmp(text, "MemTotal", 8) &&
	    gettid() != getpid())
		return snprintf(text, room, "MemAvailable: 7168 kB\n");
	return got;
}
