/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REAM_NUMAIF_H
#define REAM_NUMAIF_H

#include <linux/mempolicy.h>
#include <sys/types.h>

long move_pages(pid_t pid, unsigned long count, void **pages, const int *nodes,
		int *status, int flags);

#endif
