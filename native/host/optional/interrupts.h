/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside a hosted kernel: devices without a thread of their own. A CPU that waits
 * for a completion, or reads the clock, takes their interrupts.
 */
#ifndef REAM_INTERRUPTS_H
#define REAM_INTERRUPTS_H

/*
 * Set the function that takes pending interrupts. It returns the host_now_ns() of
 * the next one, or ULONG_MAX. Only one CPU may wait for such a device.
 */
void host_set_interrupts(unsigned long (*take)(void));

/* Take pending interrupts. Return: as @take, or ULONG_MAX if there is no such device. */
unsigned long host_take_interrupts(void);

#endif
