// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handlers that report a kernel's faults.
 *
 * Undefined symbols have addresses in an unmapped range. Calling, reading or
 * writing one faults, and its name is reported. BUG() and WARN() are traps, which
 * the kernel's bug table identifies. All other faults, and samples that do not
 * return, are reported and end the program.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "program.h"

/* A BUG() or WARN(), from the kernel's bug table. */
struct bug {
	const char *file;
	unsigned int line, flags;
};

#define BUGFLAG_WARNING 1
#define MOST_WARNINGS 20	/* print no more: a WARN in a loop repeats itself */
#define STACK_BYTES 65536
#define REPORTS_NS 200000000	/* time for the other CPUs to report where they are */

struct forbidden {
	unsigned long address;
	char variant[64];
	char symbol[256];
};

#define FORBIDDEN_BYTES 4096	/* address range of each undefined symbol */

static struct forbidden *forbidden;
static size_t nr_forbidden;
static unsigned int nr_warnings;
static bool skips_interrupt_flag;

static const struct forbidden *forbidden_at(unsigned long address)
{
	for (size_t i = 0; i < nr_forbidden; i++)
		if (address - forbidden[i].address < FORBIDDEN_BYTES)
			return &forbidden[i];
	return NULL;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	const struct forbidden *symbol = forbidden_at((unsigned long)info->si_addr);
	const struct fault_cause cause = { .symbol = symbol ? symbol->symbol : NULL };

	(void)signal;
	fault_report(info, context, &cause);
	_exit(symbol ? RUNNER_UNDEFINED_SYMBOL : RUNNER_CRASHED);
}

static void on_segv(int signal, siginfo_t *info, void *context)
{
	if (!skips_interrupt_flag || !arch_skip_interrupt_flag(context, info->si_code))
		on_fault(signal, info, context);
}

/* It is unknown which CPU is stuck, so let all report. */
static void on_stuck(int signal, siginfo_t *info, void *context)
{
	const struct timespec moment = { .tv_nsec = REPORTS_NS };

	(void)signal;
	fault_report(info, context, NULL);
	if (pool_signal_running(SIGUSR1))
		nanosleep(&moment, NULL);
	_exit(RUNNER_CRASHED);
}

static void on_asked(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	fault_report(info, context, NULL);
}

/* With GENERIC_BUG_RELATIVE_POINTERS an entry contains relative addresses. */
static const char *pointed_at(const char *distance)
{
	return distance + *(const int32_t *)distance;
}

static bool find_bug_of(const struct host_bugs *bugs, const void *context, struct bug *found)
{
	const char *entry = bugs->first;

	for (; entry < (const char *)bugs->end; entry += bugs->entry_bytes) {
		if (!arch_is_bug(context, entry))
			continue;
		found->file = pointed_at(entry + bugs->file_at);
		found->line = *(const uint16_t *)(entry + bugs->line_at);
		found->flags = *(const uint16_t *)(entry + bugs->flags_at);
		return true;
	}
	return false;
}

static bool find_bug(const void *context, struct bug *found)
{
	struct host_kernel *const *kernel = __start_ream_kernels;

	for (; kernel < __stop_ream_kernels; kernel++)
		if (find_bug_of(&(*kernel)->bugs, context, found))
			return true;
	return false;
}

static void warn(const struct fault_cause *cause)
{
	const struct watched *watched = watch_now();

	if (nr_warnings++ < MOST_WARNINGS)
		fprintf(stderr, "kernel: %s: %s: WARNING at %s:%u\n",
			watched->row ? watched->row : "no row",
			watched->subject ? watched->subject : "no variant",
			cause->file, cause->line);
}

static void on_illegal(int signal, siginfo_t *info, void *context)
{
	struct fault_cause cause = { .symbol = NULL };
	struct bug bug = { .file = NULL };

	(void)signal;
	if (find_bug(context, &bug)) {
		cause.file = bug.file;
		cause.line = bug.line;
	}
	if (!(bug.flags & BUGFLAG_WARNING)) {
		fault_report(info, context, &cause);
		_exit(RUNNER_CRASHED);
	}
	warn(&cause);
	arch_skip_bug(context);
}

/* A trap is a watched function entry or, on some architectures, a BUG() or WARN(). */
static void on_trap(int signal, siginfo_t *info, void *context)
{
	if (!reach_meet(context))
		on_illegal(signal, info, context);
}

static void read_forbidden(const char *path)
{
	struct forbidden entry;
	FILE *file = fopen(path, "r");

	if (!file)
		die(RUNNER_USAGE, "%s: cannot read the list of undefined symbols", path);
	while (fscanf(file, "%lx %63s %255s", &entry.address, entry.variant, entry.symbol) == 3) {
		forbidden = realloc(forbidden, (nr_forbidden + 1) * sizeof(entry));
		if (!forbidden)
			die(RUNNER_NO_RESOURCE, "no memory for the list of undefined symbols");
		forbidden[nr_forbidden++] = entry;
	}
	if (!feof(file))
		die(RUNNER_USAGE, "%s: entry %zu is not understood", path, nr_forbidden + 1);
	fclose(file);
}

/* Handlers need a stack of their own, since endless recursion exhausts the thread's. */
static void use_stack(void *stack)
{
	const stack_t alternate = { .ss_sp = stack, .ss_size = STACK_BYTES };

	sigaltstack(&alternate, NULL);
}

static void handle(int signal, void (*handler)(int, siginfo_t *, void *))
{
	const struct sigaction action = {
		.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART,
	};

	sigaction(signal, &action, NULL);
}

void traps_install(const char *forbidden_path)
{
	static char stack[STACK_BYTES];

	read_forbidden(forbidden_path);
	fault_prepare();
	use_stack(stack);
	handle(SIGSEGV, on_segv);
	handle(SIGBUS, on_fault);
	handle(SIGFPE, on_fault);
	handle(SIGTRAP, on_trap);
	handle(SIGABRT, on_fault);	/* libc has found a corrupted heap */
	handle(SIGSYS, on_fault);	/* a system call that native/confine forbids */
	handle(SIGILL, on_illegal);
	handle(SIGALRM, on_stuck);
	handle(SIGUSR1, on_asked);
}

void traps_enter_thread(void)
{
	sigset_t stuck;

	sigemptyset(&stuck);
	sigaddset(&stuck, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &stuck, NULL);
	use_stack(host_alloc(STACK_BYTES));
}

unsigned int traps_nr_warnings(void)
{
	return nr_warnings;
}

void traps_skip_interrupt_flag(bool skip)
{
	skips_interrupt_flag = skip;
}
