/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what its headers do not declare. */
#ifndef REAM_DEFERRED_KERNEL_H
#define REAM_DEFERRED_KERNEL_H

/* Static in mm/mm_init.c; see the file `objects`. */
int deferred_init_memmap(void *data);

#endif
