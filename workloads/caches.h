/* SPDX-License-Identifier: GPL-2.0-only */
/* Other memory that is written before an operation, so that little else is left in the caches. */
#ifndef REAM_CACHES_H
#define REAM_CACHES_H

#include <stddef.h>

/* Exit with EXIT_USAGE unless --displace-bytes @nr_bytes are whole pages. */
void caches_check_option(size_t nr_bytes);

/* Take so much memory, which fork() never copies; 0: none. */
void caches_prepare(size_t nr_bytes);

/* Write all of it. */
void caches_displace(void);

#endif
