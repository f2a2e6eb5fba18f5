/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what the parts of the compact experiment offer each other. */
#ifndef REAM_COMPACT_KERNEL_H
#define REAM_COMPACT_KERNEL_H

#include <linux/gfp.h>
#include <linux/mmzone.h>
#include "compact.h"

/* Of user memory, as a huge page is; from no other node. */
#define COMPACT_GFP (GFP_HIGHUSER_MOVABLE | __GFP_THISNODE | __GFP_NOWARN)
/* Nobody is woken up, or reclaims or compacts, for what is not free. */
#define COMPACT_GFP_FREE (COMPACT_GFP & ~__GFP_RECLAIM)

/* Static in mm/compaction.c; see the file `objects`. */
extern int sysctl_compact_unevictable_allowed;

/* kernel_node.c: the node as a boot leaves it, with this many frames, all of them free. */
void compact_boot_node(unsigned long nr_pages);

/* kernel_process.c: a process that takes all of that node, and gives some back. */
unsigned long compact_populate(const struct compact_request *request);
void compact_read_entries(unsigned long *ptes);
void compact_read_process(struct compact_result *result);

/* kernel_custom.c: per-CPU memory is all free again, and nothing was flushed. */
void compact_reset(void);
unsigned long compact_nr_flushes(void);

/* Static frames are not given back; linked with --wrap. */
void __real___folio_put(struct folio *folio);
void __wrap___folio_put(struct folio *folio);

/* What copies, in place of which kernel_custom.c has its own first; linked with --wrap. */
unsigned long __real_copy_mc_to_kernel(void *to, const void *from, unsigned int bytes);
unsigned long __wrap_copy_mc_to_kernel(void *to, const void *from, unsigned int bytes);
unsigned long __real___copy_mc_page_streaming(void *to, const void *from);
unsigned long __wrap___copy_mc_page_streaming(void *to, const void *from);

#endif
