// SPDX-License-Identifier: GPL-2.0-only
/*
 * Record which functions of a kernel the rows of a plan enter.
 *
 * Before each sample, every function in the list gets a breakpoint at its entry.
 * The handler records the function, restores the instruction and continues. So a
 * function costs at most one trap per sample. Two CPUs may hit the same
 * breakpoint: both record it and restore the same instruction. The samples of
 * such a launch have no meaningful time, and are not printed.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "program.h"

#define PAGE_MASK 4095UL

struct entry {
	ARCH_INSN *at;
	ARCH_INSN was;
	bool met;
};

static struct entry *entries;	/* by address, ascending */
static size_t nr_entries;
static size_t *order, nr_met;	/* entered functions, in the order of their first entry */

static void make_writable(void)
{
	unsigned long first = (unsigned long)entries[0].at & ~PAGE_MASK;
	unsigned long end = (unsigned long)(entries[nr_entries - 1].at + 1);

	if (mprotect((void *)first, end - first, PROT_READ | PROT_WRITE | PROT_EXEC))
		die(RUNNER_NO_RESOURCE, "the code of the kernels cannot be made writable");
}

static void put(ARCH_INSN *at, ARCH_INSN code)
{
	*at = code;
	arch_sync_code(at, at + 1);
}

void reach_read(const char *path)
{
	unsigned long address;
	FILE *file = fopen(path, "r");

	if (!file)
		die(RUNNER_USAGE, "%s: cannot read the list of functions", path);
	while (fscanf(file, "%lx", &address) == 1) {
		entries = realloc(entries, (nr_entries + 1) * sizeof(*entries));
		if (!entries)
			die(RUNNER_NO_RESOURCE, "no memory for the list of functions");
		if (nr_entries && (unsigned long)entries[nr_entries - 1].at >= address)
			die(RUNNER_USAGE, "%s: function %zu is not behind the one before it",
			    path, nr_entries + 1);
		entries[nr_entries++] = (struct entry){ .at = (ARCH_INSN *)address };
	}
	if (!feof(file) || !nr_entries)
		die(RUNNER_USAGE, "%s: function %zu is not understood", path, nr_entries + 1);
	fclose(file);
	order = calloc(nr_entries, sizeof(*order));
	if (!order)
		die(RUNNER_NO_RESOURCE, "no memory for the list of functions");
	make_writable();
}

void reach_begin(void)
{
	for (size_t i = 0; i < nr_entries; i++) {
		if (entries[i].met)
			continue;
		entries[i].was = *entries[i].at;
		put(entries[i].at, ARCH_BREAK);
	}
}

void reach_end(void)
{
	for (size_t i = 0; i < nr_entries; i++)
		if (!entries[i].met)
			put(entries[i].at, entries[i].was);
}

bool reach_meet(void *context)
{
	unsigned long *pc = arch_pc(context);
	ARCH_INSN *at = (ARCH_INSN *)(*pc - ARCH_BREAK_BEHIND);
	size_t low = 0, high = nr_entries;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (entries[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == nr_entries || entries[low].at != at)
		return false;
	if (!__atomic_exchange_n(&entries[low].met, true, __ATOMIC_RELAXED))
		order[__atomic_fetch_add(&nr_met, 1, __ATOMIC_RELAXED)] = low;
	put(at, entries[low].was);
	*pc = (unsigned long)at;
	return true;
}

void reach_print(const char *row)
{
	const char *comma = "";

	printf("{\"row\": \"%s\", \"met\": [", row);
	for (size_t i = 0; i < nr_met; i++) {
		printf("%s%zu", comma, order[i]);
		comma = ", ";
		entries[order[i]].met = false;
	}
	nr_met = 0;
	puts("]}");
}
