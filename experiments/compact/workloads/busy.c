// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "busy.h"
#include "program.h"

#define HOG_DEADLINE_NS (5 * 1000000000ULL)
#define HOG_PAUSE_NS 1000000
#define TEXT_ROOM 64

/* Not fork(): that would copy our page tables, and share what they map. */
static pid_t spawn(char *const *argv)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
					 O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
					 O_WRONLY, 0);
	error = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		die(EXIT_CANNOT_RUN, "--hog %s: %s", argv[0], strerror(error));
	return pid;
}

void hog_start(struct hog *hog, const char *program, int on_cpu)
{
	const struct timespec pause = { .tv_nsec = HOG_PAUSE_NS };
	char cpu[TEXT_ROOM], file[TEXT_ROOM], parent[TEXT_ROOM];
	char *const argv[] = { (char *)program, "--cpu", cpu, "--count", file,
			       "--parent", parent, NULL };
	uint64_t began_ns = now_ns();
	int fd;

	/* Open in the hog, too, and gone with the two of us. */
	fd = memfd_create("count", 0);
	if (fd < 0 || ftruncate(fd, sizeof(*hog->count)))
		die(EXIT_CANNOT_RUN, "memfd: %s", strerror(errno));
	hog->count = mmap(NULL, sizeof(*hog->count), PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);
	if (hog->count == MAP_FAILED)
		die(EXIT_CANNOT_RUN, "memfd: %s", strerror(errno));
	snprintf(cpu, sizeof(cpu), "%d", on_cpu);
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	snprintf(parent, sizeof(parent), "%d", getpid());
	hog->pid = spawn(argv);
	close(fd);
	while (!__atomic_load_n(hog->count, __ATOMIC_RELAXED)) {
		if (waitpid(hog->pid, NULL, WNOHANG) ||
		    now_ns() - began_ns > HOG_DEADLINE_NS)
			die(EXIT_FAILED, "--hog %s: it does not count",
			    program);
		nanosleep(&pause, NULL);
	}
	if (clock_getcpuclockid(hog->pid, &hog->clock))
		die(EXIT_FAILED, "--hog %s: no clock of it", program);
}

void hog_end(struct hog *hog)
{
	int status = 0;

	kill(hog->pid, SIGTERM);
	if (waitpid(hog->pid, &status, 0) != hog->pid || status)
		die(EXIT_FAILED, "the hog ended with wait status %d", status);
	munmap(hog->count, sizeof(*hog->count));
}

static uint64_t timeval_ns(struct timeval time)
{
	return time.tv_sec * 1000000000ULL + time.tv_usec * 1000ULL;
}

struct cpu_time cpu_time_now(const struct hog *hog)
{
	struct cpu_time time = { 0 };
	struct rusage usage;
	struct timespec used;

	getrusage(RUSAGE_THREAD, &usage);
	time.user_ns = timeval_ns(usage.ru_utime);
	time.system_ns = timeval_ns(usage.ru_stime);
	if (hog->pid && !clock_gettime(hog->clock, &used)) {
		time.hog_ns = used.tv_sec * 1000000000ULL + used.tv_nsec;
		time.iterations = __atomic_load_n(hog->count, __ATOMIC_RELAXED);
	}
	return time;
}
