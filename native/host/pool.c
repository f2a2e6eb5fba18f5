// SPDX-License-Identifier: GPL-2.0-only
/*
 * The other CPUs: one pinned thread each, with a per-CPU area of its own.
 *
 * The pool stands in for the kernel's unbound workers. An idle thread sleeps as
 * a kworker does, so the task that submits a job pays for the wakeup.
 *
 * If there are more threads than real CPUs, they share these. Threads that
 * pool_use() excludes take no jobs.
 *
 * If CPUs take turns (turns.c), host_submit() assigns a job to the first idle
 * CPU, and a CPU that waits passes its turn on.
 *
 * One lock protects all state. It also orders the effects of a job before its
 * waiter continues: the worker takes the lock after the job, and the waiter
 * takes it before it returns.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "program.h"

#define NR_JOBS 1024	/* more than any kernel here has CPUs */
#define NR_POOL_CPUS HOST_MOST_CPUS

struct job {
	void (*run)(void *job);
	void *job;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t queued;
	pthread_cond_t finished;
	pthread_cond_t admitted;	/* CPUs that are not in use wait here */
	struct job waiting[NR_JOBS];
	unsigned int nr_waiting;
	void *running[NR_POOL_CPUS];	/* job of each CPU; NULL = idle */
	struct job given[NR_POOL_CPUS];	/* next job of each CPU, if CPUs take turns */
	pthread_t thread[NR_POOL_CPUS];	/* thread of each CPU */
	unsigned int nr_cpus;
	unsigned int nr_used;
	unsigned int nr_ready;
	unsigned char took_part[NR_POOL_CPUS];
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.queued = PTHREAD_COND_INITIALIZER,
	.finished = PTHREAD_COND_INITIALIZER,
	.admitted = PTHREAD_COND_INITIALIZER,
};

static struct job take_job(void)
{
	struct job first = pool.waiting[0];

	pool.nr_waiting--;
	memmove(&pool.waiting[0], &pool.waiting[1],
		pool.nr_waiting * sizeof(pool.waiting[0]));
	return first;
}

/*
 * A CPU that is not in use must not wait on pool.queued, since a signal might
 * then wake it instead of a usable CPU. The caller holds the lock.
 */
static void wait_for_job(unsigned int cpu)
{
	for (;;) {
		if (cpu >= pool.nr_used)
			pthread_cond_wait(&pool.admitted, &pool.lock);
		else if (!pool.nr_waiting)
			pthread_cond_wait(&pool.queued, &pool.lock);
		else
			return;
	}
}

/* Assign a CPU its next job, if CPUs take turns. The caller holds the lock. */
static void give(unsigned int cpu, struct job job)
{
	pool.given[cpu] = job;
	pool.running[cpu] = job.job;
	pool.took_part[cpu] = 1;
}

static _Noreturn void run_in_turns(unsigned int cpu)
{
	for (bool had_turn = false;; had_turn = true) {
		turns_idle(had_turn);
		while (pool.running[cpu]) {
			pool.given[cpu].run(pool.given[cpu].job);
			pthread_mutex_lock(&pool.lock);
			pool.running[cpu] = NULL;
			if (pool.nr_waiting && cpu < pool.nr_used)
				give(cpu, take_job());
			pthread_mutex_unlock(&pool.lock);
		}
	}
}

/* Wait until another CPU has changed something. The caller holds the lock. */
static void wait_for_others(void)
{
	if (!turns_taken()) {
		pthread_cond_wait(&pool.finished, &pool.lock);
		return;
	}
	pthread_mutex_unlock(&pool.lock);
	turns_yield();
	pthread_mutex_lock(&pool.lock);
}

static void *pool_thread(void *cpu_number)
{
	unsigned int cpu = (unsigned int)(uintptr_t)cpu_number;

	cpu_pin(cpu);
	traps_enter_thread();
	kernel_enter_cpu(cpu);
	pthread_mutex_lock(&pool.lock);
	pool.thread[cpu] = pthread_self();
	pool.nr_ready++;
	pthread_cond_broadcast(&pool.finished);
	if (turns_taken()) {
		pthread_mutex_unlock(&pool.lock);
		turns_enter(cpu);
		run_in_turns(cpu);
	}
	for (;;) {
		struct job job;

		wait_for_job(cpu);
		job = take_job();
		pool.running[cpu] = job.job;
		pool.took_part[cpu] = 1;
		pthread_mutex_unlock(&pool.lock);
		job.run(job.job);
		pthread_mutex_lock(&pool.lock);
		pool.running[cpu] = NULL;
		pthread_cond_broadcast(&pool.finished);
	}
	return NULL;
}

void pool_start(unsigned int nr_cpus)
{
	if (nr_cpus > NR_POOL_CPUS)
		die(RUNNER_USAGE, "%u CPUs: more than %u", nr_cpus, NR_POOL_CPUS);
	pool.nr_cpus = nr_cpus;
	pool.nr_used = nr_cpus;
	for (unsigned int cpu = 1; cpu < nr_cpus; cpu++) {
		pthread_t thread;
		int error = pthread_create(&thread, NULL, pool_thread,
					   (void *)(uintptr_t)cpu);

		if (error)
			die(RUNNER_NO_RESOURCE, "no thread for CPU %u: %s", cpu, strerror(error));
		pthread_detach(thread);
	}
	pthread_mutex_lock(&pool.lock);
	while (pool.nr_ready + 1 < nr_cpus)
		pthread_cond_wait(&pool.finished, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
}

void pool_use(unsigned int nr_cpus)
{
	pthread_mutex_lock(&pool.lock);
	pool.nr_used = nr_cpus && nr_cpus < pool.nr_cpus ? nr_cpus : pool.nr_cpus;
	pthread_cond_broadcast(&pool.queued);
	pthread_cond_broadcast(&pool.admitted);
	pthread_mutex_unlock(&pool.lock);
}

/* Give a job to an idle CPU, if CPUs take turns. The caller holds the lock. */
static bool give_to_idle(struct job job)
{
	for (unsigned int cpu = 1; turns_taken() && cpu < pool.nr_used; cpu++) {
		if (pool.running[cpu])
			continue;
		give(cpu, job);
		turns_make_ready(cpu);
		return true;
	}
	return false;
}

FROM_KERNEL void host_submit(void (*run)(void *job), void *job)
{
	const struct job new = { .run = run, .job = job };

	pthread_mutex_lock(&pool.lock);
	if (give_to_idle(new)) {
		pthread_mutex_unlock(&pool.lock);
		return;
	}
	if (pool.nr_waiting == NR_JOBS)
		die(RUNNER_CRASHED, "more than %u jobs wait for a CPU", NR_JOBS);
	pool.waiting[pool.nr_waiting++] = new;
	pthread_cond_signal(&pool.queued);
	pthread_mutex_unlock(&pool.lock);
}

static bool is_running(const void *job)
{
	for (unsigned int cpu = 1; cpu < pool.nr_cpus; cpu++)
		if (pool.running[cpu] == job)
			return true;
	return false;
}

/* The lock is held. */
static int withdraw(const void *job)
{
	for (unsigned int i = 0; i < pool.nr_waiting; i++) {
		if (pool.waiting[i].job != job)
			continue;
		pool.nr_waiting--;
		memmove(&pool.waiting[i], &pool.waiting[i + 1],
			(pool.nr_waiting - i) * sizeof(pool.waiting[0]));
		return 1;
	}
	return 0;
}

FROM_KERNEL int host_withdraw(void *job)
{
	int withdrawn;

	pthread_mutex_lock(&pool.lock);
	withdrawn = withdraw(job);
	pthread_mutex_unlock(&pool.lock);
	return withdrawn;
}

static bool is_idle(void)
{
	for (unsigned int cpu = 1; cpu < pool.nr_cpus; cpu++)
		if (pool.running[cpu])
			return false;
	return !pool.nr_waiting;
}

/* Called from a signal handler, so it takes no lock. A job may end meanwhile. */
unsigned int pool_signal_running(int signal)
{
	unsigned int nr = 0;

	for (unsigned int cpu = 1; cpu < pool.nr_cpus; cpu++)
		if (pool.running[cpu] && !pthread_kill(pool.thread[cpu], signal))
			nr++;
	return nr;
}

FROM_KERNEL void host_drain(void)
{
	pthread_mutex_lock(&pool.lock);
	while (!is_idle())
		wait_for_others();
	pthread_mutex_unlock(&pool.lock);
}

FROM_KERNEL int host_cancel(void *job)
{
	int cancelled;

	pthread_mutex_lock(&pool.lock);
	cancelled = withdraw(job);
	while (!cancelled && is_running(job))
		wait_for_others();
	pthread_mutex_unlock(&pool.lock);
	return cancelled;
}

FROM_KERNEL void host_sleep(unsigned int *word, unsigned int value)
{
	if (turns_taken())
		turns_yield();
	else
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

FROM_KERNEL void host_sleep_for(unsigned int *word, unsigned int value, unsigned long ns)
{
	const struct timespec most = {
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000),
	};

	if (turns_taken())
		turns_sleep_for(ns);
	else
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &most, NULL, 0);
}

FROM_KERNEL unsigned long host_now_ns(void)
{
	return turns_taken() ? turns_now_ns() : now_ns();
}

FROM_KERNEL void host_yield(void)
{
	if (turns_taken())
		turns_yield();
	else
		sched_yield();
}

FROM_KERNEL void host_wake(unsigned int *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

struct share {
	void (*run)(void *context, unsigned int index, unsigned int nr);
	void *context;
	unsigned int index;
	unsigned int nr;
};

static void run_share(void *job)
{
	const struct share *share = job;

	share->run(share->context, share->index, share->nr);
}

void pool_run(unsigned int nr_threads,
	      void (*run)(void *context, unsigned int index, unsigned int nr),
	      void *context)
{
	struct share shares[NR_POOL_CPUS];

	for (unsigned int i = 1; i < nr_threads; i++) {
		shares[i] = (struct share){ run, context, i, nr_threads };
		host_submit(run_share, &shares[i]);
	}
	run(context, 0, nr_threads);
	for (unsigned int i = 1; i < nr_threads; i++)
		if (host_cancel(&shares[i]))
			run_share(&shares[i]);	/* no CPU was free for it */
}

void pool_reset_participants(void)
{
	memset(pool.took_part, 0, sizeof(pool.took_part));
}

unsigned int pool_nr_participants(void)
{
	unsigned int nr = 1;

	pthread_mutex_lock(&pool.lock);
	for (unsigned int cpu = 1; cpu < pool.nr_cpus; cpu++)
		nr += pool.took_part[cpu];
	pthread_mutex_unlock(&pool.lock);
	return nr;
}
