/* SPDX-License-Identifier: GPL-2.0-only */
/* x86-64: short inline functions and constants for single instructions. */
#ifndef REAM_ARCH_INLINE_H
#define REAM_ARCH_INLINE_H

#include <stdint.h>

/* Kernel code aligns its stack to 8 bytes only, but libc needs 16. */
#define FROM_KERNEL __attribute__((force_align_arg_pointer))

/* int3, and the distance from it to the address that the trap reports. */
#define ARCH_INSN unsigned char
#define ARCH_BREAK ((ARCH_INSN)0xcc)
#define ARCH_BREAK_BEHIND 1

#define ARCH_CALL_BYTES 5	/* length of a direct call */

static inline void arch_store(uint64_t *to, uint64_t word)
{
	asm volatile("movq %1, %0" : "=m" (*to) : "r" (word));
}

/* Make the compiler treat the byte as used, so that it is loaded. */
static inline void arch_use(unsigned char byte)
{
	asm volatile("" : : "q" (byte));
}

/* Nothing to do: instruction fetch is coherent with stores on x86-64. */
static inline void arch_sync_code(void *start, void *end)
{
	(void)start;
	(void)end;
}

#endif
