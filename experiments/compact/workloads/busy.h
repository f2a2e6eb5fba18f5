/* SPDX-License-Identifier: GPL-2.0-only */
/* A CPU that two loads share, and the time that each of them has it. */
#ifndef REAM_BUSY_H
#define REAM_BUSY_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct hog {
	pid_t pid;		/* 0: there is none */
	clockid_t clock;	/* of its CPU time */
	uint64_t *count;
};

struct cpu_time {
	uint64_t user_ns, system_ns;	/* of this thread */
	uint64_t hog_ns;
	uint64_t iterations;		/* of the hog */
};

/* Run @program, which is hog.c, until hog_end(); it counts by now. */
void hog_start(struct hog *hog, const char *program, int on_cpu);

void hog_end(struct hog *hog);

struct cpu_time cpu_time_now(const struct hog *hog);

#endif
