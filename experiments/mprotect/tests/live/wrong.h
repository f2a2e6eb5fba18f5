/* SPDX-License-Identifier: GPL-2.0-only */
/* The names that the linker's --wrap gives a function and what replaces it. */
#ifndef REAM_WRONG_MPROTECT_H
#define REAM_WRONG_MPROTECT_H

#include <stddef.h>
#include <sys/mman.h>

#ifndef WRONG
#define WRONG 1
#endif

int __real_mprotect(void *at, size_t nr_bytes, int protection);
int __wrap_mprotect(void *at, size_t nr_bytes, int protection);

#endif
