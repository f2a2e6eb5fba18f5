/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared memory in folios of one size, each mapped by PTEs. */
#ifndef REAM_SHARED_H
#define REAM_SHARED_H

#include "folios.h"

/* Before anything is mapped: exit if shared folios of that size cannot be had here. */
void shared_require(const struct folios *folios);

/**
 * shared_map() - what folios_map() does, with MAP_SHARED memory
 * @folios: As for that; neither by_pmd nor nodes nor scattered.
 *
 * The size is chosen with hugepages-<K>kB/shmem_enabled = advise, and never for
 * all others. Exits with EXIT_CANNOT_RUN if such folios are not to be had.
 */
void shared_map(struct folios *folios);

#endif
