/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REAM_CLASSIFY_H
#define REAM_CLASSIFY_H

/* Classes of instructions that are counted separately; bits. */
enum insn_class {
	INSN_LOCKED = 1,	/* with a lock prefix, an xchg with memory; atomic on arm64 */
	INSN_STREAMING = 2,	/* a non-temporal store */
	INSN_FENCE = 4,		/* lfence, mfence, sfence */
	INSN_PREFETCH = 8,
	INSN_JUMP = 16,		/* a branch that is always taken: jmp, call, ret */
	INSN_CONDITIONAL = 32,	/* a conditional branch */
	INSN_REPEATED = 64,	/* a string instruction with a rep prefix */
	INSN_CALL = 128,	/* a jump that pushes the return address */
	INSN_RETURN = 256,	/* a jump that pops the return address */
	INSN_INDIRECT = 512,	/* a jump that reads its target from memory */
	INSN_EXCLUSIVE = 1024,	/* the store of a load/store-exclusive loop */
};

#endif
