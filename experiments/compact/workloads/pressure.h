/* SPDX-License-Identifier: GPL-2.0-only */
/* Giving memory back before others miss it. */
#ifndef REAM_PRESSURE_H
#define REAM_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * From now on end this process, which frees all memory that it holds, as soon
 * as less than @reserve_bytes are available or others wait for memory; exits
 * with EXIT_CANNOT_RUN and the reason, also in the midst of a page fault. Exits
 * so at once if this kernel does not report waits (PSI). To be called once.
 */
void pressure_watch(size_t reserve_bytes);

/* What we do now may wait for memory itself, which is nobody else's. */
void pressure_began(void);

/* It is done; @waited: whether it has. */
void pressure_ended(bool waited);

/* From now on nothing is held that could be missed. */
void pressure_over(void);

/* MemAvailable of /proc/meminfo. */
size_t pressure_available_bytes(void);

/* The least that there was since pressure_watch(). */
size_t pressure_least_bytes(void);

#endif
