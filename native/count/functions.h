/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REAM_FUNCTIONS_H
#define REAM_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct function - what is counted apart
 * @start: Its first address.
 * @end: Behind the last.
 * @whole: Index of the function that stands for it and for its other parts.
 * @is_kernels: Whether its accesses count as lines and pages of memory, and what
 *	it does as done by its callers.
 */
struct function {
	uint64_t start, end;
	unsigned int whole;
	_Bool is_kernels;
};

/* All of them, by address, ascending. */
extern struct function *functions;
extern unsigned int nr_functions;

/* Read lines of start, end, whether it is the kernel's, and which function it is of. */
void functions_read(const char *path);

/* The function that an address is in; nr_functions if it is in none. */
unsigned int function_at(uint64_t address);

/* End the program with a line that says why. */
_Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...);

/* As calloc(), or the program ends. */
void *zeroed(size_t nr, size_t bytes);

#endif
