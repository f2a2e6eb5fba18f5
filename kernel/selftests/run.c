// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run one selftest in the guest: the one that this program is named after.
 *
 * As NAME, it loads the module /modules/NAME.ko, with those parameters that
 * the kernel's command line has for it (NAME.parameter=value), as modprobe
 * would. Where there is no such module, it runs the program
 * /selftests/bin/NAME, in that folder, and passes every line of its output to
 * the kernel's log, after one line "# Program: NAME". With NAME.cpu=N on the
 * command line it runs on that CPU only.
 *
 * It goes to the log, not to the console, because the kernel does not wait for
 * the console's queue: its messages would turn up in the middle of a result.
 *
 * Exit status: the program's, or 0 once the module is loaded (KUnit's results
 * are in the log, whatever they are), 2 if neither can be had.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_CANNOT 2

#define PROGRAMS "/selftests/bin"

/* A record of the kernel's log takes about 1000 bytes. */
#define LONGEST_LINE 900

static FILE *kernel_log;

static void say(const char *line)
{
	fprintf(kernel_log, "<6>%.*s\n", LONGEST_LINE, line);
	fflush(kernel_log);
}

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *format, ...)
{
	char text[LONGEST_LINE];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	say(text);
	exit(EXIT_CANNOT);
}

static void open_log(void)
{
	FILE *limit = fopen("/proc/sys/kernel/printk_devkmsg", "w");

	/* Ten lines in five seconds, by default. */
	if (limit) {
		fputs("on\n", limit);
		fclose(limit); /* refused where the command line has settled it */
	}
	/* One write per record. */
	kernel_log = fopen("/dev/kmsg", "w");
	if (!kernel_log) {
		perror("/dev/kmsg");
		exit(EXIT_CANNOT);
	}
	setvbuf(kernel_log, NULL, _IOFBF, 2 * LONGEST_LINE);
}

/* What the command line has for a module, one space between its words. */
static void find_parameters(const char *module, char *to, size_t size)
{
	FILE *file = fopen("/proc/cmdline", "r");
	size_t length = strlen(module), used = 0;
	char line[4096] = "", *rest = line, *word;

	if (!file || !fgets(line, sizeof(line), file))
		die("/proc/cmdline: %s", strerror(errno));
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	*to = '\0';
	while ((word = strsep(&rest, " ")) && used < size)
		if (!strncmp(word, module, length) && word[length] == '.')
			used += snprintf(to + used, size - used, "%s ",
					 word + length + 1);
	if (used >= size)
		die("%s: too many parameters", module);
}

static int load_module(int fd, const char *name)
{
	char parameters[1024];

	find_parameters(name, parameters, sizeof(parameters));
	/* init may have loaded it already. */
	if (syscall(SYS_finit_module, fd, parameters, 0) && errno != EEXIST)
		die("%s.ko %s: %s", name, parameters, strerror(errno));
	return 0;
}

static void keep_to_cpu(const char *name)
{
	char parameters[1024];
	unsigned int cpu;
	cpu_set_t cpus;

	find_parameters(name, parameters, sizeof(parameters));
	if (sscanf(parameters, "cpu=%u", &cpu) != 1)
		return;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die("%s.cpu=%u: %s", name, cpu, strerror(errno));
}

static int run_program(const char *name)
{
	char path[256], title[256];
	char *line = NULL;
	size_t size = 0;
	int ends[2], status;
	FILE *output;
	pid_t child;

	snprintf(path, sizeof(path), PROGRAMS "/%s", name);
	snprintf(title, sizeof(title), "# Program: %s", name);
	say(title);
	/* Some start themselves again, as a file of the current folder. */
	if (chdir(PROGRAMS))
		die(PROGRAMS ": %s", strerror(errno));
	if (pipe2(ends, O_CLOEXEC))
		die("pipe: %s", strerror(errno));
	child = fork();
	if (child < 0)
		die("fork: %s", strerror(errno));
	if (!child) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		keep_to_cpu(name);
		execl(path, path, NULL);
		die("%s: %s", path, strerror(errno));
	}
	close(ends[1]);
	output = fdopen(ends[0], "r");
	if (!output)
		die("%s: %s", path, strerror(errno));
	while (getline(&line, &size, output) > 0) {
		line[strcspn(line, "\n")] = '\0';
		say(line);
	}
	if (waitpid(child, &status, 0) != child)
		die("%s: %s", path, strerror(errno));
	if (WIFSIGNALED(status))
		die("%s: killed by signal %d", path, WTERMSIG(status));
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	const char *name = argc ? strrchr(argv[0], '/') : NULL;
	char path[256];
	int fd;

	open_log();
	name = name ? name + 1 : argv[0];
	snprintf(path, sizeof(path), "/modules/%s.ko", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return load_module(fd, name);
	return run_program(name);
}
