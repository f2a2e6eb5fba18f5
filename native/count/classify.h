/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REAM_CLASSIFY_H
#define REAM_CLASSIFY_H

/* What an instruction is, as far as it is counted apart; bits. */
enum insn_class {
	INSN_LOCKED = 1,	/* with a lock prefix, an xchg with memory; atomic on arm64 */
	INSN_STREAMING = 2,	/* a store that goes past the caches */
	INSN_FENCE = 4,		/* lfence, mfence, sfence */
	INSN_PREFETCH = 8,
	INSN_JUMP = 16,		/* a branch that is always taken: jmp, call, ret */
	INSN_CONDITIONAL = 32,	/* one that may not be */
	INSN_REPEATED = 64,	/* a string instruction with a rep prefix */
	INSN_CALL = 128,	/* of jumps: puts the way back on the stack */
	INSN_RETURN = 256,	/* takes it from there */
	INSN_INDIRECT = 512,	/* reads where to from memory */
	INSN_EXCLUSIVE = 1024,	/* the store of a loop that does what a locked one does */
};

#endif
