/* SPDX-License-Identifier: GPL-2.0-only */
/* What ream/tlb_flushes.o of a hosted kernel notes, for glue.c and who reads its results. */
#ifndef REAM_TLB_FLUSHES_H
#define REAM_TLB_FLUSHES_H

/**
 * struct tlb_flushes - of which translations other CPUs had to be told
 * @nr: How often any were flushed. Where a kernel does it by instructions of its
 *	own, without a call: how many of them it executed.
 * @start: Lowest address whose translation was.
 * @end: Behind the highest; the highest there is, where all were.
 */
struct tlb_flushes {
	unsigned long nr;
	unsigned long start;
	unsigned long end;
};

/* Since the last call of host_reset_flushes(). */
extern struct tlb_flushes host_flushes;

void host_reset_flushes(void);

#endif
