// SPDX-License-Identifier: GPL-2.0-only
/*
 * A computer in a process: it boots the mm that is linked into it and runs a
 * program of steps. Its report is lines of JSON on standard output.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "computer.h"
#include "launch.h"

#define SILENCE_S 20		/* deadline of a step; the longest one takes 0.1 s */
#define MOST_PROGRAM_BYTES (1L << 20)

/* Only @reaches is used here. If it is set, patched code stays writable. */
struct launch launch;

/* Whether to report which blocks of code were executed. */
static bool covers, covers_measured;	/* the whole run, or the measured step alone */

static const char *boot_words = "";

static struct watched now_at;
static char now_at_row[128];

_Noreturn void die(enum runner_exit code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	_exit((int)code);
}

/* The step that fault_report() names in a crash report. */
const struct watched *watch_now(void)
{
	return &now_at;
}

FROM_KERNEL void host_now_at(unsigned int line, const char *step)
{
	snprintf(now_at_row, sizeof(now_at_row), "%u", line);
	now_at.row = now_at_row;
	now_at.subject = step;
	traps_set_patience(SILENCE_S);
}

FROM_KERNEL void host_report(const char *line)
{
	size_t bytes = strlen(line);

	while (bytes) {
		ssize_t nr = write(STDOUT_FILENO, line, bytes);

		if (nr < 0 && errno != EINTR)
			_exit(LIBMM_NO_RESOURCE);
		line += nr > 0 ? nr : 0;
		bytes -= nr > 0 ? (size_t)nr : 0;
	}
}

FROM_KERNEL void host_say(const char *text)
{
	fputs(text, stderr);
}

FROM_KERNEL _Noreturn void host_exit(int code)
{
	if (covers) {
		reach_print("");
		fflush(stdout);
	}
	_exit(code);
}

FROM_KERNEL const char *host_boot_words(void)
{
	return boot_words;
}

FROM_KERNEL void host_set_per_cpu(unsigned long offset)
{
	arch_enter_cpu(offset);
}

FROM_KERNEL unsigned long host_now_ns(void)
{
	return now_ns();
}

FROM_KERNEL unsigned long host_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (unsigned long)now.tv_sec * 1000000000 + (unsigned long)now.tv_nsec;
}

FROM_KERNEL void host_mark(enum libmm_mark mark)
{
	switch (mark) {
	case LIBMM_BEGIN:
		if (covers_measured)
			reach_begin();
		mark_begin();
		mark_pause();
		return;
	case LIBMM_ENTER:
		mark_go_on();
		return;
	case LIBMM_LEAVE:
		mark_pause();
		return;
	case LIBMM_END:
		mark_end();
		if (covers_measured)
			reach_end();
	}
}

static char *read_program(const char *path)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	char *text = calloc(1, MOST_PROGRAM_BYTES + 1);
	long bytes = 0;

	if (fd < 0 || !text)
		die(RUNNER_USAGE, "%s: %s", path, strerror(errno));
	while (bytes < MOST_PROGRAM_BYTES) {
		ssize_t nr = read(fd, text + bytes, (size_t)(MOST_PROGRAM_BYTES - bytes));

		if (nr < 0)
			die(RUNNER_USAGE, "%s: %s", path, strerror(errno));
		if (!nr)
			return text;
		bytes += nr;
	}
	die(RUNNER_USAGE, "%s: longer than %ld bytes", path, MOST_PROGRAM_BYTES);
}

static unsigned long number(const char *word)
{
	char *last;
	unsigned long value = strtoul(word, &last, 0);

	if (*last || last == word)
		die(RUNNER_USAGE, "%s is not numeric", word);
	return value;
}

static void read_words(int argc, char **argv, struct libmm_task *task, int *ram_fd)
{
	const char *forbidden = NULL, *program = NULL, *blocks = NULL;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--program"))
			program = argv[i + 1];
		else if (!strcmp(argv[i], "--forbidden"))
			forbidden = argv[i + 1];
		else if (!strcmp(argv[i], "--blocks"))
			blocks = argv[i + 1];
		else if (!strcmp(argv[i], "--measured"))
			covers_measured = number(argv[i + 1]);
		else if (!strcmp(argv[i], "--checks"))
			task->checks = (enum libmm_checks)number(argv[i + 1]);
		else if (!strcmp(argv[i], "--goes-on"))
			task->goes_on = (int)number(argv[i + 1]);
		else if (!strcmp(argv[i], "--boot"))
			boot_words = argv[i + 1];
		else if (!strcmp(argv[i], "--ram"))
			*ram_fd = (int)number(argv[i + 1]);
		else
			die(RUNNER_USAGE, "%s: no option", argv[i]);
	}
	if (argc % 2 == 0 || !forbidden || !program)
		die(RUNNER_USAGE, "usage: %s --forbidden FILE --program FILE%s", argv[0],
		    " [--checks 0|1|2|3] [--goes-on 1] [--ram FD] [--boot WORDS] [--blocks FILE [--measured 1]]");
	traps_prepare(forbidden);
	covers = blocks;
	covers_measured &= covers;
	if (covers)
		reach_read(blocks);
	task->program = read_program(program);
}

static void begin(void *task)
{
	libmm_kernel()->run(task);
}

int main(int argc, char **argv)
{
	struct libmm_task task = { .checks = LIBMM_EACH };
	struct host_machine machine = { .nr_cpus = 1 };
	int ram_fd = -1;
	void *unused;

	read_words(argc, argv, &task, &ram_fd);
	memory_prepare(ram_fd, strstr(task.program, " measure"));
	arch_describe_cpu(&machine);
	arch_enter_cpu(0);
	memory_open_text();
	alternatives_apply((*__start_ream_kernels)->boot(&machine));
	memory_open_text();
	launch.reaches = true;
	if (covers && !covers_measured)
		reach_begin();
	/* Use a stack at a fixed address, because wait queues store addresses on it. */
	host_switch(&unused, host_new_stack(begin, &task));
	return LIBMM_CRASHED;
}
