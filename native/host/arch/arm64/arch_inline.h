/* SPDX-License-Identifier: GPL-2.0-only */
/* arm64: what is a matter of an instruction. */
#ifndef REAM_ARCH_INLINE_H
#define REAM_ARCH_INLINE_H

#include <stdint.h>

/* Kernel code and libc agree on how a stack is aligned. */
#define FROM_KERNEL

/* brk #0x7ea; the trap is told at it. The kernel's own have other numbers. */
#define ARCH_INSN uint32_t
#define ARCH_BREAK ((ARCH_INSN)0xd420fd40)
#define ARCH_BREAK_BEHIND 0

#define ARCH_CALL_BYTES 4

static inline void arch_store(uint64_t *to, uint64_t word)
{
	asm volatile("str %1, %0" : "=m" (*to) : "r" (word));
}

/* As far as the compiler can tell, the byte is used. */
static inline void arch_use(unsigned char byte)
{
	asm volatile("" : : "r" (byte));
}

/* Instructions are fetched past what was stored. */
static inline void arch_sync_code(void *start, void *end)
{
	__builtin___clear_cache(start, end);
}

#endif
