// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPUs that take turns, where what they execute is counted: one runs at a time,
 * until it waits for another or has nothing to do, and then the one that has
 * been ready the longest. Which CPU does what part of a work that they share is
 * then the same each time, and no lock is ever waited for.
 *
 * Time is the same each time, too: a reading of the clock takes as long as any
 * other, a sleep as long as was asked for, and nothing else takes any.
 */
#include <pthread.h>
#include "program.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool taken;
	unsigned int turn;	/* whose it is */
	unsigned int ready[HOST_MOST_CPUS];	/* a ring, of CPUs that wait for theirs */
	unsigned int first, nr_ready;
	uint64_t now_ns;	/* changed by whose turn it is */
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

/* The lock is held. */
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
	if (had_it)	/* whoever waits for what we did is ready */
		pass_on();
	wait_for_turn();
	pthread_mutex_unlock(&turns.lock);
}
