/* SPDX-License-Identifier: GPL-2.0-only */
/* The names that the linker's --wrap gives a function and what replaces it. */
#ifndef REAM_WRONG_H
#define REAM_WRONG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "../../../../workloads/folios.h"

pid_t __real_fork(void);
int __real_munmap(void *at, size_t nr_bytes);
int __real_madvise(void *at, size_t nr_bytes, int advice);
bool __real_folios_hold(const struct folios *folios);

pid_t __wrap_fork(void);
int __wrap_munmap(void *at, size_t nr_bytes);
int __wrap_madvise(void *at, size_t nr_bytes, int advice);
bool __wrap_folios_hold(const struct folios *folios);

#endif
