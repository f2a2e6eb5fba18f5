// SPDX-License-Identifier: GPL-2.0-only
/* The functions that the plugin counts apart, and what it does when it cannot go on. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "functions.h"

struct function *functions;
unsigned int nr_functions;

void die(const char *format, ...)
{
	va_list arguments;

	fputs("counting: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(EXIT_FAILURE);
}

void *zeroed(size_t nr, size_t bytes)
{
	void *memory = calloc(nr, bytes);

	if (!memory)
		die("no memory");
	return memory;
}

void functions_read(const char *path)
{
	unsigned long start, end;
	unsigned int is_kernels, whole;
	FILE *file = fopen(path, "r");

	if (!file)
		die("%s: cannot read the list of functions", path);
	while (fscanf(file, "%lx %lx %u %u", &start, &end, &is_kernels, &whole) == 4) {
		functions = realloc(functions, (nr_functions + 1) * sizeof(*functions));
		if (!functions)
			die("no memory");
		if (end <= start || (nr_functions && functions[nr_functions - 1].end > start))
			die("%s: function %u is not behind the one before it", path,
			    nr_functions + 1);
		functions[nr_functions++] = (struct function){ start, end, whole, is_kernels };
	}
	for (unsigned int i = 0; i < nr_functions; i++)
		if (functions[i].whole >= nr_functions)
			die("%s: function %u is of none", path, i + 1);
	if (!feof(file) || !nr_functions)
		die("%s: function %u is not understood", path, nr_functions + 1);
	fclose(file);
}

unsigned int function_at(uint64_t address)
{
	unsigned int low = 0, high = nr_functions;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (functions[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < nr_functions && functions[low].start <= address)
		return low;
	return nr_functions;
}
