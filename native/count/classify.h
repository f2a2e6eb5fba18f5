/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REAM_CLASSIFY_H
#define REAM_CLASSIFY_H

#include <stddef.h>
#include <stdint.h>

/* What an instruction is, as far as it is counted apart; bits. */
enum insn_class {
	INSN_LOCKED = 1,	/* with a lock prefix, or an xchg with memory */
	INSN_STREAMING = 2,	/* a store that goes past the caches */
	INSN_FENCE = 4,		/* lfence, mfence, sfence */
	INSN_PREFETCH = 8,
	INSN_JUMP = 16,		/* a branch that is always taken: jmp, call, ret */
	INSN_CONDITIONAL = 32,	/* one that may not be */
	INSN_REPEATED = 64,	/* a string instruction with a rep prefix */
	INSN_CALL = 128,	/* of jumps: puts the way back on the stack */
	INSN_RETURN = 256,	/* takes it from there */
	INSN_INDIRECT = 512,	/* reads where to from memory */
};

/* The bits of an instruction of x86-64 in 64-bit mode; 0 of most. */
unsigned int classify(const unsigned char *code, size_t bytes);

/* Where a direct jump that is always taken leads; @end is behind it. 0 of all else. */
uint64_t jump_target(const unsigned char *code, size_t bytes, uint64_t end);

#endif
