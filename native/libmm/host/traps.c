// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults of a hosted kernel. It resolves or expects some of them itself. Others
 * are calls of missing functions, or crashes; those end the run.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "computer.h"

#define STACK_BYTES 65536
#define FORBIDDEN_BYTES 4096
#define MOST_NAME_BYTES 128
#define BUGFLAG_WARNING 1
#define BUGFLAG_ONCE 2
#define BUGFLAG_DONE 4
#define MOST_WARNINGS 20

/* QEMU's user mode, used to count instructions, calls handlers on an unaligned stack. */
#define HANDLER __attribute__((force_align_arg_pointer))

struct forbidden {
	unsigned long address;
	char symbol[MOST_NAME_BYTES];
};

static struct forbidden *forbidden;
static size_t nr_forbidden;
static unsigned int nr_warnings;

static const char *forbidden_at(unsigned long address)
{
	for (size_t i = 0; i < nr_forbidden; i++)
		if (address - forbidden[i].address < FORBIDDEN_BYTES)
			return forbidden[i].symbol;
	return NULL;
}

static _Noreturn void end(const siginfo_t *info, void *context, struct fault_cause *cause)
{
	const char *symbol = forbidden_at((unsigned long)info->si_addr);

	if (!symbol)
		symbol = forbidden_at(*arch_pc(context));
	cause->symbol = symbol;
	fault_report(info, context, cause);
	_exit(symbol ? LIBMM_UNDEFINED_SYMBOL : LIBMM_CRASHED);
}

HANDLER static void on_segv(int signal, siginfo_t *info, void *context)
{
	struct fault_cause cause = { .symbol = NULL };
	unsigned long fixup;

	(void)signal;
	if (!arch_is_no_pointer(info->si_code) &&
	    libmm_kernel()->resolve_fault((unsigned long)info->si_addr))
		return;
	fixup = libmm_kernel()->find_fixup(*arch_pc(context));
	if (!fixup)
		end(info, context, &cause);
	*arch_pc(context) = fixup;
}

HANDLER static void on_fault(int signal, siginfo_t *info, void *context)
{
	struct fault_cause cause = { .symbol = NULL };

	(void)signal;
	end(info, context, &cause);
}

static const struct host_bugs *bugs(void)
{
	return &(*__start_ream_kernels)->bugs;
}

static char *find_bug(const void *context)
{
	char *entry = (char *)bugs()->first;

	for (; entry < (const char *)bugs()->end; entry += bugs()->entry_bytes)
		if (arch_is_bug(context, entry))
			return entry;
	return NULL;
}

static void warn(const char *file, unsigned int line)
{
	char text[256];

	if (nr_warnings++ >= MOST_WARNINGS)
		return;
	snprintf(text, sizeof(text), "{\"warning\": \"%s:%u\", \"line\": %s}\n", file, line,
		 watch_now()->row ? watch_now()->row : "0");
	host_report(text);
}

HANDLER static void on_illegal(int signal, siginfo_t *info, void *context)
{
	struct fault_cause cause = { .symbol = NULL };
	char *entry = find_bug(context);
	uint16_t *flags;

	if (signal == SIGTRAP && reach_meet(context))
		return;
	if (!entry)
		end(info, context, &cause);
	cause.file = entry + bugs()->file_at + *(int32_t *)(entry + bugs()->file_at);
	cause.line = *(uint16_t *)(entry + bugs()->line_at);
	flags = (uint16_t *)(entry + bugs()->flags_at);
	if (!(*flags & BUGFLAG_WARNING))
		end(info, context, &cause);
	if (!(*flags & BUGFLAG_ONCE) || !(*flags & BUGFLAG_DONE))
		warn(cause.file, cause.line);
	*flags |= BUGFLAG_DONE;
	arch_skip_bug(context);
}

void traps_set_patience(unsigned int seconds)
{
	alarm(seconds);
}

static void read_forbidden(const char *path)
{
	FILE *file = fopen(path, "r");
	struct forbidden entry;

	if (!file)
		die(RUNNER_USAGE, "%s: cannot read the list of undefined symbols", path);
	while (fscanf(file, "%lx %*s %127s", &entry.address, entry.symbol) == 2) {
		forbidden = realloc(forbidden, (nr_forbidden + 1) * sizeof(entry));
		if (!forbidden)
			die(RUNNER_NO_RESOURCE, "no memory for the list of undefined symbols");
		forbidden[nr_forbidden++] = entry;
	}
	fclose(file);
}

static void handle(int signal, void (*handler)(int, siginfo_t *, void *))
{
	/* A handler may fault itself: the kernel walks its page tables there. */
	const struct sigaction action = {
		.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	sigaction(signal, &action, NULL);
}

void traps_prepare(const char *forbidden_path)
{
	static char stack[STACK_BYTES];
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };

	read_forbidden(forbidden_path);
	fault_prepare();
	sigaltstack(&alternate, NULL);
	handle(SIGSEGV, on_segv);
	handle(SIGBUS, on_segv);
	handle(SIGFPE, on_fault);
	handle(SIGSYS, on_fault);
	handle(SIGABRT, on_fault);
	handle(SIGALRM, on_fault);	/* the run has been silent for too long */
	handle(SIGILL, on_illegal);
	handle(SIGTRAP, on_illegal);
}
