/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REAM_QUANTITIES_H
#define REAM_QUANTITIES_H

/* What is counted, in the order in which it is written. */
enum quantity {
	INSTRUCTIONS, LOADS, LOAD_BYTES, STORES, STORE_BYTES, LOCKED, STREAMING,
	FENCES, PREFETCHES, TAKEN, REPEATED, NR_QUANTITIES
};

#endif
