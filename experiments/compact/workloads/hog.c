// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work for a CPU, and for nothing else: a loop that counts. Compiled with
 * program.c, statically.
 *
 *   hog --cpu N --count FILE [--parent PID]
 *
 * FILE's first eight bytes are the count, at any time: the loop writes it to a
 * mapping, and makes no system call. SIGTERM ends it, and so does the end of
 * the process that has started it; then it prints how far it came. That
 * process may end before this one can look at it, so it says its PID.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "program.h"

/*
 * An emulated store may take ten times as long as another, for as long as the
 * emulator thinks that there is code in its page.
 */
#define TELL_EVERY 1024

const char *const program_name = "hog";

#define NO_CPU ULONG_MAX

struct options {
	unsigned long cpu;
	const char *count;
	unsigned long parent;
};

static bool is_over;

static void end(int signal)
{
	(void)signal;
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
}

static void parse_options(struct options *options, char **argv)
{
	const struct word words[] = {
		{ "--cpu", .number = &options->cpu },
		{ "--count", .text = &options->count },
		{ "--parent", .number = &options->parent },
		{ }
	};

	read_words(argv, words, NULL, NULL);
	if (options->cpu == NO_CPU)
		die(EXIT_USAGE, "--cpu N: missing");
	if (options->cpu >= CPU_SETSIZE)
		die(EXIT_USAGE, "--cpu %lu: below %d here", options->cpu,
		    CPU_SETSIZE);
	if (!options->count)
		die(EXIT_USAGE, "--count FILE: missing");
}

static uint64_t *map_count(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	uint64_t *count;

	if (fd < 0 || ftruncate(fd, sizeof(*count)))
		die(EXIT_CANNOT_RUN, "%s: %s", path, strerror(errno));
	count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED,
		     fd, 0);
	if (count == MAP_FAILED)
		die(EXIT_CANNOT_RUN, "map %s: %s", path, strerror(errno));
	close(fd);
	return count;
}

int main(int argc, char **argv)
{
	const struct sigaction ending = { .sa_handler = end };
	struct options options = {
		.cpu = NO_CPU, .parent = (unsigned long)getppid(),
	};
	uint64_t iterations = 0;
	uint64_t *count;

	(void)argc;
	parse_options(&options, argv);
	count = map_count(options.count);
	sigaction(SIGTERM, &ending, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* It may have ended before that; then nobody would tell us. */
	if ((unsigned long)getppid() != options.parent)
		end(SIGTERM);
	run_on_cpu(options.cpu);
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		if (!(++iterations % TELL_EVERY))
			__atomic_store_n(count, iterations, __ATOMIC_RELAXED);
	}
	__atomic_store_n(count, iterations, __ATOMIC_RELAXED);
	printf("{\"end\":{\"ok\":true,\"iterations\":%llu}}\n",
	       (unsigned long long)iterations);
	return EXIT_SUCCESS;
}
