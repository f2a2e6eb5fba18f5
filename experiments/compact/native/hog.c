// SPDX-License-Identifier: GPL-2.0-only
/*
 * A loop that only counts, on the CPU that runs the kernel: the two share it
 * as the scheduler of the machine has them share it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "hog.h"
#include "program.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	clockid_t clock;
	bool is_there;
	unsigned int runs;	/* whether it is to count */
	uint64_t count;
} hog = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

static uint64_t time_of(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		die(RUNNER_NO_RESOURCE, "a thread's CPU time cannot be read");
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Time the calling thread was runnable while another ran; 0 if the kernel reports none. */
static uint64_t waited_ns(void)
{
	static int file = -2;
	char text[96];
	ssize_t bytes;

	/* Of the program's first thread, which runs the kernel. */
	if (file == -2)
		file = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	bytes = file < 0 ? -1 : pread(file, text, sizeof(text) - 1, 0);
	if (bytes <= 0)
		return 0;
	text[bytes] = '\0';
	return strtoull(strchr(text, ' ') ? strchr(text, ' ') : "", NULL, 10);
}

static void *count(void *unused)
{
	(void)unused;
	cpu_pin(0);
	for (;;) {
		pthread_mutex_lock(&hog.lock);
		while (!hog.runs)
			pthread_cond_wait(&hog.changed, &hog.lock);
		pthread_mutex_unlock(&hog.lock);
		while (__atomic_load_n(&hog.runs, __ATOMIC_RELAXED))
			__atomic_store_n(&hog.count, hog.count + 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void start(void)
{
	int error = pthread_create(&hog.thread, NULL, count, NULL);

	if (error || pthread_getcpuclockid(hog.thread, &hog.clock))
		die(RUNNER_NO_RESOURCE, "no thread for the loop that counts: %s", strerror(error));
	hog.is_there = true;
}

static void set_running(bool runs)
{
	if (!hog.is_there)
		start();
	pthread_mutex_lock(&hog.lock);
	__atomic_store_n(&hog.runs, runs, __ATOMIC_RELAXED);
	pthread_cond_signal(&hog.changed);
	pthread_mutex_unlock(&hog.lock);
}

static void read_work(struct work *work)
{
	work->hog_iterations = __atomic_load_n(&hog.count, __ATOMIC_RELAXED);
	work->hog_ns = work->is_busy ? time_of(hog.clock) : 0;
	work->kernel_ns = time_of(CLOCK_THREAD_CPUTIME_ID);
	work->waited_ns = waited_ns();
	work->time_ns = now_ns();
}

void work_begin(struct work *work, bool is_busy)
{
	uint64_t count = hog.count;

	work->is_busy = is_busy;
	if (is_busy) {
		set_running(true);
		/* It has begun: what is timed begins with both of them. */
		while (__atomic_load_n(&hog.count, __ATOMIC_RELAXED) == count)
			host_yield();
	}
	read_work(work);
}

void work_end(struct work *work)
{
	const struct work begin = *work;

	read_work(work);
	if (work->is_busy)
		set_running(false);
	work->time_ns -= begin.time_ns;
	work->kernel_ns -= begin.kernel_ns;
	work->waited_ns -= begin.waited_ns;
	work->hog_ns -= begin.hog_ns;
	work->hog_iterations -= begin.hog_iterations;
}
