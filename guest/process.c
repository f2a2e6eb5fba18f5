// SPDX-License-Identifier: GPL-2.0-only
/* Files, programs and modules. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "guest.h"

#define NS_PER_S 1000000000ULL
#define EXIT_NOT_STARTED 127

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

int read_text(const char *path, char *text, size_t text_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;
	int error;

	if (fd < 0)
		return -1;
	length = read(fd, text, text_bytes - 1);
	error = errno;
	close(fd);
	errno = error;
	if (length < 0)
		return -1;
	if (length && text[length - 1] == '\n')
		length--;
	text[length] = '\0';
	return (int)length;
}

int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length;
	int error;

	if (fd < 0)
		return -1;
	length = write(fd, text, strlen(text));
	error = errno;
	close(fd);
	errno = error;
	return length < 0 ? -1 : 0;
}

void set_text(const char *path, const char *text)
{
	if (write_text(path, text))
		give_up(errno, "write %s to %s", text, path);
}

void set_parameter(const char *module, const char *name, const char *value)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module,
		 name);
	set_text(path, value);
}

static int64_t left_ns(uint64_t deadline_ns)
{
	return (int64_t)(deadline_ns - now_ns());
}

/* SIGCHLD must be blocked since before @child was made. Reaps orphans, too. */
static bool wait_until(pid_t child, uint64_t deadline_ns, int *status)
{
	sigset_t child_ended;

	sigemptyset(&child_ended);
	sigaddset(&child_ended, SIGCHLD);
	for (;;) {
		struct timespec timeout;
		int64_t left;
		pid_t ended;

		while ((ended = waitpid(-1, status, WNOHANG)) > 0)
			if (ended == child)
				return true;
		left = left_ns(deadline_ns);
		if (left <= 0)
			return false;
		timeout.tv_sec = left / (int64_t)NS_PER_S;
		timeout.tv_nsec = left % (int64_t)NS_PER_S;
		sigtimedwait(&child_ended, NULL, &timeout);
	}
}

static pid_t fork_child(const char *for_what)
{
	sigset_t child_ended;
	pid_t child;

	sigemptyset(&child_ended);
	sigaddset(&child_ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_ended, NULL);
	fflush(stdout);
	child = fork();
	if (child < 0)
		give_up(errno, "fork for %s", for_what);
	if (!child) {
		sigprocmask(SIG_UNBLOCK, &child_ended, NULL);
		setsid();
	}
	return child;
}

/* Return: the exit status as a shell has it. */
static int join_child(pid_t child, const char *what, unsigned int deadline_s)
{
	uint64_t deadline_ns = deadline_s == NO_DEADLINE ? INT64_MAX :
			       now_ns() + deadline_s * NS_PER_S;
	int status;

	if (!wait_until(child, deadline_ns, &status)) {
		kill(-child, SIGKILL);
		give_up(0, "%s: still running after %u seconds", what,
			deadline_s);
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

uint64_t write_timed(const char *path, const char *text)
{
	struct {
		uint64_t time_ns;
		int error;
	} *result;
	uint64_t time_ns;
	pid_t child;
	int status, error;

	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (result == MAP_FAILED)
		give_up(errno, "memory for the time of %s", path);
	result->error = EIO;
	child = fork_child(path);
	if (!child) {
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		uint64_t start_ns = now_ns();
		bool done = fd >= 0 && write(fd, text, strlen(text)) >= 0;

		error = errno;
		result->time_ns = now_ns() - start_ns;
		result->error = done ? 0 : error;
		_exit(0);
	}
	status = join_child(child, path, CHILD_DEADLINE_S);
	error = result->error;
	time_ns = result->time_ns;
	munmap(result, sizeof(*result));
	if (status)
		give_up(0, "write %s to %s: ended with %d", text, path, status);
	if (error)
		give_up(error, "write %s to %s; the console may say more", text,
			path);
	return time_ns;
}

int run_program(const char *const argv[], unsigned int deadline_s)
{
	pid_t child = fork_child(argv[0]);

	if (!child) {
		/* A terminal of its own, where there is one: for Ctrl-C. */
		ioctl(STDIN_FILENO, TIOCSCTTY, 0);
		execv(argv[0], (char *const *)argv);
		printf("# %s: %s\n", argv[0], strerror(errno));
		fflush(stdout);
		_exit(EXIT_NOT_STARTED);
	}
	return join_child(child, argv[0], deadline_s);
}

void program_start(struct program *program, const char *const argv[])
{
	int words[2], lines[2];

	if (pipe2(words, O_CLOEXEC) || pipe2(lines, O_CLOEXEC))
		give_up(errno, "pipes for %s", argv[0]);
	*program = (struct program){ .name = argv[0] };
	program->pid = fork_child(argv[0]);
	if (!program->pid) {
		dup2(words[0], STDIN_FILENO);
		dup2(lines[1], STDOUT_FILENO);
		execv(argv[0], (char *const *)argv);
		fprintf(stderr, "# %s: %s\n", argv[0], strerror(errno));
		_exit(EXIT_NOT_STARTED);
	}
	close(words[0]);
	close(lines[1]);
	program->words = fdopen(words[1], "w");
	program->lines = fdopen(lines[0], "r");
	if (!program->words || !program->lines)
		give_up(errno, "talk to %s", argv[0]);
}

const char *program_hear(struct program *program)
{
	ssize_t length = getline(&program->line, &program->line_bytes,
				 program->lines);

	if (length <= 0)
		return NULL;
	if (program->line[length - 1] == '\n')
		program->line[length - 1] = '\0';
	return program->line;
}

const char *program_ask(struct program *program, const char *what)
{
	/* Of one that is dead, we hear nothing. */
	fprintf(program->words, "%s\n", what);
	fflush(program->words);
	return program_hear(program);
}

int program_end(struct program *program)
{
	fclose(program->words);
	while (program_hear(program))
		;
	free(program->line);
	fclose(program->lines);
	return join_child(program->pid, program->name, CHILD_DEADLINE_S);
}

int run_heard(const char *const argv[], const char *kind)
{
	struct program program;
	const char *line;

	program_start(&program, argv);
	while ((line = program_hear(&program))) {
		fputs(line, message_begin(kind));
		message_end();
	}
	return program_end(&program);
}

void load_module(const char *name, const char *parameters)
{
	char path[PATH_BYTES];
	int fd;

	snprintf(path, sizeof(path), "/modules/%s.ko", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		give_up(errno, "open %s", path);
	if (syscall(SYS_finit_module, fd, parameters, 0))
		give_up(errno, "load module %s with \"%s\"; the console says more",
			name, parameters);
	close(fd);
}
