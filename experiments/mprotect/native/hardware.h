/* SPDX-License-Identifier: GPL-2.0-only */
/* Another CPU that uses the page tables while they are changed. */
#ifndef REAM_HARDWARE_H
#define REAM_HARDWARE_H

#include <stdbool.h>

/**
 * struct hardware - what notes that entries were used, and of which it did
 * @tables: First entry of each page table, as the kernel has it.
 * @nr: Entries, of all tables.
 * @set: By entry: what it has noted.
 * @ready: It has begun.
 * @done: Nobody needs it any more.
 */
struct hardware {
	unsigned long **tables;
	unsigned long nr;
	unsigned char *set;
	bool ready;
	bool done;
};

/* Whether there is a CPU for it. */
bool hardware_is_there(void);

/* Call @run(@context) while another CPU loads and writes through all entries. */
void hardware_run(struct hardware *hardware, void (*run)(void *context), void *context);

/* Of @nr entries that were read back: one that lost a bit; @nr if none. */
unsigned long hardware_first_loss(const struct hardware *hardware, const unsigned long *is);

#endif
