/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a sample begins and ends, for a plugin that counts what lies between:
 * long no-operations with displacements that no compiler emits. They cost one
 * instruction each, outside of the two readings of the clock.
 */
#ifndef REAM_MARKS_H
#define REAM_MARKS_H

#define MARK_BEGIN 0x6d616572	/* "ream" */
#define MARK_END 0x4d414552	/* "REAM" */

#ifndef __ASSEMBLER__
static inline void mark_begin(void)
{
	asm volatile("nopl %c0(%%rax)" : : "i"(MARK_BEGIN) : "memory");
}

static inline void mark_end(void)
{
	asm volatile("nopl %c0(%%rax)" : : "i"(MARK_END) : "memory");
}
#endif

#endif
