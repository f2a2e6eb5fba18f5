// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel's faults, turned into words.
 *
 * Symbols that nobody defines have addresses in a range where nothing is
 * mapped, so calling, reading or writing one faults, and its name is said.
 * BUG() and WARN() are ud2: the kernel's own table tells which.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include "program.h"

/* As kbuild lays it out with GENERIC_BUG_RELATIVE_POINTERS and DEBUG_BUGVERBOSE. */
struct bug_entry {
	int32_t bug_addr_disp;
	int32_t file_disp;
	uint16_t line;
	uint16_t flags;
};

#define BUGFLAG_WARNING 1
#define MOST_WARNINGS 20	/* printed; a WARN in a loop over pages says no more */
#define UD2_BYTES 2
#define STACK_BYTES 65536

struct forbidden {
	unsigned long address;
	char variant[64];
	char symbol[256];
};

#define FORBIDDEN_BYTES 4096	/* what each such symbol is given */

static struct forbidden *forbidden;
static size_t nr_forbidden;
static unsigned int nr_warnings;

static const struct forbidden *forbidden_at(unsigned long address)
{
	for (size_t i = 0; i < nr_forbidden; i++)
		if (address - forbidden[i].address < FORBIDDEN_BYTES)
			return &forbidden[i];
	return NULL;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	unsigned long rip = (unsigned long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	unsigned long address = (unsigned long)info->si_addr;
	const struct forbidden *symbol = forbidden_at(address);

	(void)signal;
	if (!symbol)
		die(RUNNER_CRASHED, "kernel code faulted at %#lx, touching %#lx", rip, address);
	die(RUNNER_UNDEFINED_SYMBOL,
	    "%s: the kernel reached `%s`, which the native stage does not provide (from %#lx)",
	    symbol->variant, symbol->symbol, rip);
}

static const struct bug_entry *bug_at(unsigned long address)
{
	const struct bug_entry *bug = (const struct bug_entry *)__start___bug_table;
	const struct bug_entry *stop = (const struct bug_entry *)__stop___bug_table;

	for (; bug < stop; bug++)
		if ((unsigned long)&bug->bug_addr_disp + (long)bug->bug_addr_disp == address)
			return bug;
	return NULL;
}

static void on_illegal(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	const struct bug_entry *bug = bug_at((unsigned long)registers[REG_RIP]);

	(void)signal;
	(void)info;
	if (!bug)
		die(RUNNER_CRASHED, "illegal instruction at %#lx",
		    (unsigned long)registers[REG_RIP]);
	if (nr_warnings < MOST_WARNINGS)
		fprintf(stderr, "kernel: %s at %s:%u\n",
			bug->flags & BUGFLAG_WARNING ? "WARNING" : "BUG",
			(const char *)&bug->file_disp + bug->file_disp, bug->line);
	if (!(bug->flags & BUGFLAG_WARNING))
		die(RUNNER_CRASHED, "the kernel stopped at a BUG");
	nr_warnings++;
	registers[REG_RIP] += UD2_BYTES;
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

void traps_install(const char *forbidden_path)
{
	static char stack[STACK_BYTES];
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction fault = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct sigaction illegal = { .sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO };

	read_forbidden(forbidden_path);
	sigaltstack(&alternate, NULL);
	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGBUS, &fault, NULL);
	sigaction(SIGILL, &illegal, NULL);
}

unsigned int traps_nr_warnings(void)
{
	return nr_warnings;
}
