/* SPDX-License-Identifier: GPL-2.0-only */
/* x86-64: what is a matter of an instruction. */
#ifndef REAM_ARCH_INLINE_H
#define REAM_ARCH_INLINE_H

#include <stdint.h>

/* Kernel code keeps its stack aligned to 8 bytes only; libc wants 16. */
#define FROM_KERNEL __attribute__((force_align_arg_pointer))

/* int3, and how far behind it the trap is told. */
#define ARCH_INSN unsigned char
#define ARCH_BREAK ((ARCH_INSN)0xcc)
#define ARCH_BREAK_BEHIND 1

#define ARCH_CALL_BYTES 5	/* of a plain call */

static inline void arch_store(uint64_t *to, uint64_t word)
{
	asm volatile("movq %1, %0" : "=m" (*to) : "r" (word));
}

/* As far as the compiler can tell, the byte is used. */
static inline void arch_use(unsigned char byte)
{
	asm volatile("" : : "q" (byte));
}

/* Other CPUs' code follows. */
static inline void arch_sync_code(void *start, void *end)
{
	(void)start;
	(void)end;
}

#endif
