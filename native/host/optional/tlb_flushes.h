/* SPDX-License-Identifier: GPL-2.0-only */
/* TLB flushes that ream/tlb_flushes.o of a hosted kernel records, for glue.c and the runner. */
#ifndef REAM_TLB_FLUSHES_H
#define REAM_TLB_FLUSHES_H

/**
 * struct tlb_flushes - TLB flushes since the last reset
 * @nr: Number of flushes. If a kernel flushes by instructions of its own and not by
 *	a call (arm64), the number of these instructions.
 * @start: Lowest address that was flushed.
 * @end: End of the highest range that was flushed. ULONG_MAX for a full flush.
 */
struct tlb_flushes {
	unsigned long nr;
	unsigned long start;
	unsigned long end;
};

/* Flushes since the last call of host_reset_flushes(). */
extern struct tlb_flushes host_flushes;

void host_reset_flushes(void);

#endif
