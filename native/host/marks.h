/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks at the begin and end of a sample, for a plugin that counts instructions
 * between them. They are no-ops that no compiler emits: on x86-64 long ones with
 * displacements, on arm64 unallocated hints. Each costs one instruction, outside
 * of the timed span.
 */
#ifndef REAM_MARKS_H
#define REAM_MARKS_H

#define MARK_BEGIN 0x6d616572	/* "ream" */
#define MARK_END 0x4d414552	/* "REAM" */
#define MARK_PAUSE 0x73756170	/* "paus" */
#define MARK_GO_ON 0x6e6f6f67	/* "goon" */
#define MARK_BIT 0x74696272	/* "rbit"; its lowest bit is the value */

/* The same marks as hint numbers on arm64. */
#define MARK_HINT_BEGIN 0x50
#define MARK_HINT_END 0x51
#define MARK_HINT_BIT 0x52	/* and 0x53 */
#define MARK_HINT_PAUSE 0x54
#define MARK_HINT_GO_ON 0x55

#ifndef __ASSEMBLER__
static inline void mark_begin(void)
{
#ifdef __aarch64__
	asm volatile("hint #%c0" : : "i"(MARK_HINT_BEGIN) : "memory");
#else
	asm volatile("nopl %c0(%%rax)" : : "i"(MARK_BEGIN) : "memory");
#endif
}

static inline void mark_end(void)
{
#ifdef __aarch64__
	asm volatile("hint #%c0" : : "i"(MARK_HINT_END) : "memory");
#else
	asm volatile("nopl %c0(%%rax)" : : "i"(MARK_END) : "memory");
#endif
}

/* Instructions between these two marks do not count for the sample. */
static inline void mark_pause(void)
{
#ifdef __aarch64__
	asm volatile("hint #%c0" : : "i"(MARK_HINT_PAUSE) : "memory");
#else
	asm volatile("nopl %c0(%%rax)" : : "i"(MARK_PAUSE) : "memory");
#endif
}

static inline void mark_go_on(void)
{
#ifdef __aarch64__
	asm volatile("hint #%c0" : : "i"(MARK_HINT_GO_ON) : "memory");
#else
	asm volatile("nopl %c0(%%rax)" : : "i"(MARK_GO_ON) : "memory");
#endif
}

static inline void mark_bit(int is_set)
{
#ifdef __aarch64__
	if (is_set)
		asm volatile("hint #%c0" : : "i"(MARK_HINT_BIT | 1));
	else
		asm volatile("hint #%c0" : : "i"(MARK_HINT_BIT));
#else
	if (is_set)
		asm volatile("nopl %c0(%%rax)" : : "i"(MARK_BIT | 1));
	else
		asm volatile("nopl %c0(%%rax)" : : "i"(MARK_BIT & ~1));
#endif
}

#define MARK_NAME_BITS 64

/*
 * Tell the plugin the name of the next sample, before the clock is read. The
 * plugin cannot read registers, so each bit is a mark, the highest first.
 */
static inline void mark_name(unsigned long name)
{
	for (int bit = MARK_NAME_BITS - 1; bit >= 0; bit--)
		mark_bit((int)(name >> bit & 1));
}
#endif

#endif
