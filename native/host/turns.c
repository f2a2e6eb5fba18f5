// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPUs take turns when instructions are counted. One CPU runs until it waits for
 * another or becomes idle. The CPU that has been ready longest runs next. So
 * each run divides shared work among the CPUs in the same way, and no CPU ever
 * waits for a lock.
 *
 * Time is simulated, too. Each reading of the clock advances it by a constant,
 * a sleep by its length, and nothing else advances it.
 */
#include <pthread.h>
#include "program.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool taken;
	unsigned int turn;	/* CPU that has the turn */
	unsigned int ready[HOST_MOST_CPUS];	/* ring of CPUs that wait for a turn */
	unsigned int first, nr_ready;
	uint64_t now_ns;	/* written only by the CPU that has the turn */
} turns = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

#define READING_NS 100

static __thread unsigned int own_cpu;

void turns_begin(void)
{
	turns.taken = true;
}

bool turns_taken(void)
{
	return turns.taken;
}

void turns_enter(unsigned int cpu)
{
	own_cpu = cpu;
}

static void add(unsigned int cpu)
{
	turns.ready[(turns.first + turns.nr_ready++) % HOST_MOST_CPUS] = cpu;
}

/* Give the turn to the next ready CPU. The caller holds the lock. */
static void pass_on(void)
{
	turns.turn = turns.ready[turns.first];
	turns.first = (turns.first + 1) % HOST_MOST_CPUS;
	turns.nr_ready--;
	pthread_cond_broadcast(&turns.changed);
}

static void wait_for_turn(void)
{
	while (turns.turn != own_cpu)
		pthread_cond_wait(&turns.changed, &turns.lock);
}

void turns_make_ready(unsigned int cpu)
{
	pthread_mutex_lock(&turns.lock);
	add(cpu);
	pthread_mutex_unlock(&turns.lock);
}

bool turns_yield(void)
{
	bool others;

	pthread_mutex_lock(&turns.lock);
	others = turns.nr_ready;
	if (others) {
		add(own_cpu);
		pass_on();
		wait_for_turn();
	}
	pthread_mutex_unlock(&turns.lock);
	return others;
}

uint64_t turns_now_ns(void)
{
	return turns.now_ns += READING_NS;
}

void turns_sleep_for(uint64_t ns)
{
	if (!turns_yield())
		turns.now_ns += ns;
}

void turns_idle(bool had_it)
{
	pthread_mutex_lock(&turns.lock);
	if (had_it)	/* any CPU that waits for our result is ready */
		pass_on();
	wait_for_turn();
	pthread_mutex_unlock(&turns.lock);
}
