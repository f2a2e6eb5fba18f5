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
#define MARK_BIT 0x74696272	/* "rbit"; with the lowest bit set, a bit that is set */

#ifndef __ASSEMBLER__
static inline void mark_begin(void)
{
	asm volatile("nopl %c0(%%rax)" : : "i"(MARK_BEGIN) : "memory");
}

static inline void mark_end(void)
{
	asm volatile("nopl %c0(%%rax)" : : "i"(MARK_END) : "memory");
}

#define MARK_NAME_BITS 64

/*
 * Say by what name the next sample is known, before its clock is read: a plugin
 * cannot read registers, so the name's bits are marks, the highest first.
 */
static inline void mark_name(unsigned long name)
{
	for (int bit = MARK_NAME_BITS - 1; bit >= 0; bit--) {
		if (name >> bit & 1)
			asm volatile("nopl %c0(%%rax)" : : "i"(MARK_BIT | 1));
		else
			asm volatile("nopl %c0(%%rax)" : : "i"(MARK_BIT & ~1));
	}
}
#endif

#endif
