// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watchdog: it knows the current sample, and ends one that does not return.
 *
 * The timer is set and cleared outside of the timed span. It counts real time,
 * because a sample that hangs in a wait uses no CPU time.
 */
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include "program.h"

/* A sample may take this many times as long as the slowest of its row. */
#define MOST_TIMES_SLOWER 20

#define NS_PER_S 1000000000ULL
#define MOST_NS (100 * NS_PER_S)	/* lab/ream/stage/native.py waits longer for a line */

static struct {
	struct watched watched;
	uint64_t first_ns;	/* limit of the first sample of a row */
	uint64_t least_ns;	/* lower bound of the limit of later samples */
	uint64_t slowest_ns;	/* slowest sample of this row; 0 = none has ended */
	uint64_t began_ns;
	bool is_running;
} watch;

void watch_set_patience(unsigned int first_s, unsigned int least_s)
{
	watch.first_ns = first_s * NS_PER_S;
	watch.least_ns = least_s * NS_PER_S;
}

const struct watched *watch_now(void)
{
	return &watch.watched;
}

static void set_timer(uint64_t ns)
{
	const struct itimerval timer = {
		.it_value = {
			.tv_sec = (time_t)(ns / NS_PER_S),
			.tv_usec = (suseconds_t)(ns % NS_PER_S / 1000),
		},
	};

	setitimer(ITIMER_REAL, &timer, NULL);
}

static uint64_t allowed_ns(void)
{
	uint64_t ns = watch.slowest_ns * MOST_TIMES_SLOWER;

	if (!watch.slowest_ns)
		return watch.first_ns;
	ns = ns > watch.least_ns ? ns : watch.least_ns;
	return ns < MOST_NS ? ns : MOST_NS;
}

void watch_begin(const char *row, const char *subject)
{
	watch_end();
	if (!watch.watched.row || strcmp(row, watch.watched.row))
		watch.slowest_ns = 0;
	watch.watched = (struct watched){ .row = row, .subject = subject };
	watch.watched.allowed_ns = allowed_ns();
	watch.watched.slowest_ns = watch.slowest_ns;
	watch.is_running = true;
	watch.began_ns = now_ns();
	set_timer(watch.watched.allowed_ns);
}

void watch_end(void)
{
	uint64_t ns = now_ns() - watch.began_ns;

	if (!watch.is_running)
		return;
	set_timer(0);
	watch.is_running = false;
	if (ns > watch.slowest_ns)
		watch.slowest_ns = ns;
}
