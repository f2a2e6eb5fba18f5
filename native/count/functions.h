/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REAM_FUNCTIONS_H
#define REAM_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct function - a function, or a part of one, that is counted separately
 * @start: First address.
 * @end: Address after the last one.
 * @whole: Index of the function that represents it and its other parts.
 * @is_kernels: Whether its accesses count as touched lines and pages, and its
 *	counts are included in those of its callers.
 */
struct function {
	uint64_t start, end;
	unsigned int whole;
	_Bool is_kernels;
};

/* All functions, in ascending order of address. */
extern struct function *functions;
extern unsigned int nr_functions;

/* Read lines of start, end, whether it is the kernel's, and the index of its function. */
void functions_read(const char *path);

/* Index of the function that contains an address, or nr_functions. */
unsigned int function_at(uint64_t address);

/* Print a message and end the program. */
_Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...);

/* As calloc(), but end the program if there is no memory. */
void *zeroed(size_t nr, size_t bytes);

#endif
