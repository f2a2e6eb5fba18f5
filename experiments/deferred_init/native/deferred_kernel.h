/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what its headers do not declare. */
#ifndef REAM_DEFERRED_KERNEL_H
#define REAM_DEFERRED_KERNEL_H

#include <linux/atomic.h>
#include <linux/completion.h>

/* Static in mm/mm_init.c; see the file `objects`. */
int deferred_init_memmap(void *data);
extern atomic_t pgdat_init_n_undone;
extern struct completion pgdat_init_all_done_comp;
/* Static in mm/memblock.c. */
extern int reset_managed_pages_done;

struct deferred_request;
struct deferred_span;

/* kernel_boot.c */
void boot_prepare(const struct deferred_request *request);
void boot_run(unsigned int nr_nodes, void (*threads)(void));
const char *boot_broken(const struct deferred_span *nodes, unsigned int nr_nodes);

#endif
