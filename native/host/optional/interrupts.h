/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside a hosted kernel: devices without a thread of their own. Whoever waits
 * for a completion, or looks at the clock, takes their interrupts.
 */
#ifndef REAM_INTERRUPTS_H
#define REAM_INTERRUPTS_H

/*
 * Take what is due; returns when the next one is, by host_now_ns(), or
 * ULONG_MAX. NULL: there is no such device. One CPU alone may wait for them.
 */
extern unsigned long (*host_take_interrupts)(void);

#endif
