// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "pressure.h"
#include "program.h"

#define PSI "/proc/pressure/memory"
#define MEMINFO "/proc/meminfo"
#define TEXT_ROOM 4096
#define LOOK_NS 5000000
#define MIB (1UL << 20)

/*
 * "some" of PSI is time in which a task or more waited. That of others adds up
 * here and runs out at a twentieth of the time, so that what a machine has all
 * the time does not end us: 50 ms more than that do.
 */
#define BEARABLE_SHARE 20
#define BEARABLE_NS 50000000ULL

/* A thread for each node, whose work counts as time that it waits itself. */
#define DAEMON "kcompactd"
#define MOST_DAEMONS 64

static struct {
	int psi_fd, meminfo_fd;
	int daemon_fds[MOST_DAEMONS];
	unsigned int nr_daemons;
	size_t reserve_bytes;
	size_t least_bytes;
	uint64_t own_ns;	/* for which we have waited */
	uint64_t since_ns;	/* when what may wait has begun; 0: there is none */
	bool over;
} watch;

/* Not die(): its exit() would wait for streams that the other thread holds. */
static _Noreturn void give_way(const char *reason)
{
	static const char after[] = "; all was given back\n";

	if (write(STDERR_FILENO, program_name, strlen(program_name)) < 0 ||
	    write(STDERR_FILENO, ": ", 2) < 0 ||
	    write(STDERR_FILENO, reason, strlen(reason)) < 0 ||
	    write(STDERR_FILENO, after, sizeof(after) - 1) < 0)
		_exit(EXIT_FAILED);
	_exit(EXIT_CANNOT_RUN);
}

/* The number after @name in a file of the kernel's, opened once. */
static uint64_t number_in(int fd, const char *name)
{
	char text[TEXT_ROOM];
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);
	const char *at;

	if (got <= 0)
		give_way(strerror(errno));
	text[got] = '\0';
	at = strstr(text, name);
	if (!at)
		give_way("the kernel does not say how memory is");
	return strtoull(at + strlen(name), NULL, 10);
}

size_t pressure_available_bytes(void)
{
	return number_in(watch.meminfo_fd, "MemAvailable:") * 1024;
}

/* Total time since boot that some task waited for memory (PSI), in ns. */
static uint64_t waited_ns(void)
{
	return number_in(watch.psi_fd, "total=") * 1000;
}

static void find_daemons(void)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	char path[300];

	while (folder && (entry = readdir(folder))) {
		const char *name = NULL;

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (*entry->d_name >= '0' && *entry->d_name <= '9')
			name = first_line(path);
		if (!name || strncmp(name, DAEMON, strlen(DAEMON)))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/schedstat",
			 entry->d_name);
		watch.daemon_fds[watch.nr_daemons] = open(path,
							  O_RDONLY | O_CLOEXEC);
		if (watch.daemon_fds[watch.nr_daemons] >= 0 &&
		    ++watch.nr_daemons == MOST_DAEMONS)
			break;
	}
	if (folder)
		closedir(folder);
}

/* For how long they have run, or wanted to; nobody waits for that. */
static uint64_t daemons_ns(void)
{
	unsigned long long run, queued;
	uint64_t total = 0;
	char text[128];

	for (unsigned int i = 0; i < watch.nr_daemons; i++) {
		ssize_t got = pread(watch.daemon_fds[i], text,
				    sizeof(text) - 1, 0);

		text[got < 0 ? 0 : got] = '\0';
		if (sscanf(text, "%llu %llu", &run, &queued) == 2)
			total += run + queued;
	}
	return total;
}

static uint64_t own_wait_ns(uint64_t now)
{
	uint64_t since = __atomic_load_n(&watch.since_ns, __ATOMIC_SEQ_CST);
	uint64_t own = __atomic_load_n(&watch.own_ns, __ATOMIC_SEQ_CST);

	/* What goes on may wait, and turn out not to have. */
	return own + daemons_ns() + (since && now > since ? now - since : 0);
}

static void look_at_memory(void)
{
	size_t available = pressure_available_bytes();
	char reason[160];

	if (available < watch.least_bytes)
		__atomic_store_n(&watch.least_bytes, available,
				 __ATOMIC_RELAXED);
	if (available >= watch.reserve_bytes)
		return;
	snprintf(reason, sizeof(reason),
		 "%zu MiB of memory are available, and %zu are to stay so",
		 available / MIB, watch.reserve_bytes / MIB);
	give_way(reason);
}

struct account {
	uint64_t now, waited, own;
	uint64_t debt_ns;
};

static void look_at_pressure(struct account *account)
{
	struct account was = *account;
	uint64_t waited, own, bearable;
	char reason[160];

	account->now = now_ns();
	account->waited = waited_ns();
	account->own = own_wait_ns(account->now);
	waited = account->waited - was.waited;
	/* Ours goes down where what went on has not waited after all. */
	own = account->own > was.own ? account->own - was.own : 0;
	bearable = (account->now - was.now) / BEARABLE_SHARE;
	account->debt_ns += waited > own ? waited - own : 0;
	account->debt_ns -= account->debt_ns < bearable ? account->debt_ns :
							  bearable;
	if (account->debt_ns <= BEARABLE_NS)
		return;
	snprintf(reason, sizeof(reason),
		 "others wait for memory: " PSI " has %llu ms more than it may",
		 (unsigned long long)account->debt_ns / 1000000);
	give_way(reason);
}

static void *watch_memory(void *unused)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	struct account account = {
		.now = now_ns(),
		.waited = waited_ns(),
		.own = own_wait_ns(now_ns()),
	};

	while (!__atomic_load_n(&watch.over, __ATOMIC_RELAXED)) {
		look_at_memory();
		look_at_pressure(&account);
		nanosleep(&pause, NULL);
	}
	return unused;
}

void pressure_watch(size_t reserve_bytes)
{
	pthread_t thread;
	char byte;

	watch.reserve_bytes = reserve_bytes;
	watch.least_bytes = (size_t)-1;
	watch.meminfo_fd = open(MEMINFO, O_RDONLY | O_CLOEXEC);
	watch.psi_fd = open(PSI, O_RDONLY | O_CLOEXEC);
	/* One that was built with it, but not told to, fails to read only. */
	if (watch.meminfo_fd < 0 || watch.psi_fd < 0 ||
	    pread(watch.psi_fd, &byte, 1, 0) != 1)
		die(EXIT_CANNOT_RUN,
		    PSI ": %s; without it nobody sees who waits for memory; psi=1 turns it on",
		    strerror(errno));
	find_daemons();
	look_at_memory();
	if (pthread_create(&thread, NULL, watch_memory, NULL))
		die(EXIT_CANNOT_RUN, "no thread to watch memory");
}

void pressure_began(void)
{
	__atomic_store_n(&watch.since_ns, now_ns(), __ATOMIC_SEQ_CST);
}

void pressure_ended(bool waited)
{
	uint64_t since = watch.since_ns;

	/* In this order the watch never sees less of it than there was. */
	if (waited)
		__atomic_add_fetch(&watch.own_ns, now_ns() - since,
				   __ATOMIC_SEQ_CST);
	__atomic_store_n(&watch.since_ns, 0, __ATOMIC_SEQ_CST);
}

void pressure_over(void)
{
	__atomic_store_n(&watch.over, true, __ATOMIC_RELAXED);
}

size_t pressure_least_bytes(void)
{
	return __atomic_load_n(&watch.least_bytes, __ATOMIC_RELAXED);
}
