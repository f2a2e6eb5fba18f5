/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what the parts of the compact experiment offer each other. */
#ifndef REAM_COMPACT_KERNEL_H
#define REAM_COMPACT_KERNEL_H

#include <linux/mm_types.h>
#include "compact.h"
#include "node.h"

/* Static in mm/compaction.c; see the file `objects`. */
extern int sysctl_compact_unevictable_allowed;

/* kernel_process.c: a process that takes all of the node, and gives some back. */
unsigned long compact_populate(const struct compact_request *request);

unsigned long compact_nr_flushes(void);

/* kernel_parked.c: look for free frames that are in no list, if a request asks for it. */
void compact_begin_looking(const struct compact_request *request);
void compact_end_looking(struct compact_result *result);

/* Whenever a page is copied, if compact_looks. */
extern bool compact_looks;
void compact_look(void);

/* Static frames are not given back; linked with --wrap. */
void __real___folio_put(struct folio *folio);
void __wrap___folio_put(struct folio *folio);

/* What copies, in place of which kernel_custom.c has its own first; linked with --wrap. */
unsigned long __real_copy_mc_to_kernel(void *to, const void *from, unsigned int bytes);
unsigned long __wrap_copy_mc_to_kernel(void *to, const void *from, unsigned int bytes);
unsigned long __real___copy_mc_page_streaming(void *to, const void *from);
unsigned long __wrap___copy_mc_page_streaming(void *to, const void *from);

#endif
