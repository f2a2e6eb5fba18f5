/* SPDX-License-Identifier: GPL-2.0-only */
/* The names that the linker's --wrap gives a function and what replaces it. */
#ifndef REAM_WRONG_MREMAP_H
#define REAM_WRONG_MREMAP_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stddef.h>
#include <sys/mman.h>

#ifndef WRONG
#define WRONG 1
#endif

void *__real_mremap(void *from, size_t old_bytes, size_t new_bytes, int flags,
		    ...);
void *__wrap_mremap(void *from, size_t old_bytes, size_t new_bytes, int flags,
		    ...);

#endif
