/* SPDX-License-Identifier: GPL-2.0-only */
/* arm64: short inline functions and constants for single instructions. */
#ifndef REAM_ARCH_INLINE_H
#define REAM_ARCH_INLINE_H

#include <stdint.h>

/* Kernel code and libc use the same stack alignment. */
#define FROM_KERNEL

/* brk #0x7ea. The trap reports its own address. The kernel uses other numbers. */
#define ARCH_INSN uint32_t
#define ARCH_BREAK ((ARCH_INSN)0xd420fd40)
#define ARCH_BREAK_BEHIND 0

#define ARCH_CALL_BYTES 4

static inline void arch_store(uint64_t *to, uint64_t word)
{
	asm volatile("str %1, %0" : "=m" (*to) : "r" (word));
}

/* Make the compiler treat the byte as used, so that it is loaded. */
static inline void arch_use(unsigned char byte)
{
	asm volatile("" : : "r" (byte));
}

/* Instruction fetch is not coherent with stores, so clean and invalidate caches. */
static inline void arch_sync_code(void *start, void *end)
{
	__builtin___clear_cache(start, end);
}

#endif
