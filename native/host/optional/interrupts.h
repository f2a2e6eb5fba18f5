/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside a hosted kernel: devices without a thread of their own. Whoever waits
 * for a completion, or looks at the clock, takes their interrupts.
 */
#ifndef REAM_INTERRUPTS_H
#define REAM_INTERRUPTS_H

/*
 * From now on @take takes what is due, and returns when the next one is, by
 * host_now_ns(), or ULONG_MAX. One CPU alone may wait for such a device.
 */
void host_set_interrupts(unsigned long (*take)(void));

/* Take what is due; the same, and ULONG_MAX where there is no such device. */
unsigned long host_take_interrupts(void);

#endif
