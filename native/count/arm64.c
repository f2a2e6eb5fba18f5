// SPDX-License-Identifier: GPL-2.0-only
/*
 * What kind of instruction of arm64 it is, from its word.
 *
 * Source: Arm Architecture Reference Manual for A-profile, DDI 0487, chapter C4.
 */
#include <string.h>
#include "classify.h"
#include "isa.h"
#include "marks.h"

/* As they are numbered in native/host/arch/arm64/privileged.c. */
#define HINT 0xd503201f
#define HINT_MASK 0xfffff01f

static uint32_t word_of(const unsigned char *code)
{
	uint32_t word;

	memcpy(&word, code, sizeof(word));
	return word;
}

static bool is(uint32_t word, uint32_t mask, uint32_t value)
{
	return (word & mask) == value;
}

/* Atomic operations of one instruction: ld<op>, st<op>, swp, cas, casp; not ldapr. */
static bool is_atomic(uint32_t word)
{
	if (is(word, 0x3f200c00, 0x38200000))
		return !is(word, 0x3ffffc00, 0x38bfc000);
	return is(word, 0x3fa07c00, 0x08a07c00) || is(word, 0xbfa07c00, 0x08207c00);
}

/* The store of a loop of a load and a store: stxr, stlxr, and of pairs. */
static bool is_exclusive_store(uint32_t word)
{
	return is(word, 0x3fe00000, 0x08000000) || is(word, 0xbfe00000, 0x88200000);
}

static bool is_prefetch(uint32_t word)
{
	return is(word, 0xffc00000, 0xf9800000) || is(word, 0xffe00c00, 0xf8a00800) ||
	       is(word, 0xffe00c00, 0xf8800000) || is(word, 0xff000000, 0xd8000000);
}

/* dsb, dmb, isb, sb; clrex is not. */
static bool is_fence(uint32_t word)
{
	return is(word, 0xfffff01f, 0xd503301f) && (word >> 5 & 7) >= 4;
}

static unsigned int branch(uint32_t word)
{
	if (is(word, 0xfc000000, 0x14000000) ||		/* b */
	    is(word, 0xfffffc1f, 0xd61f0000))		/* br */
		return INSN_JUMP;
	if (is(word, 0xfc000000, 0x94000000) ||		/* bl */
	    is(word, 0xfffffc1f, 0xd63f0000))		/* blr */
		return INSN_JUMP | INSN_CALL;
	if (is(word, 0xfffffc1f, 0xd65f0000))		/* ret */
		return INSN_JUMP | INSN_RETURN;
	if (is(word, 0xff000010, 0x54000000) || is(word, 0x7c000000, 0x34000000))
		return INSN_CONDITIONAL;	/* b.cond; cbz, cbnz, tbz, tbnz */
	return 0;
}

static unsigned int classify_arm64(const unsigned char *code, size_t bytes)
{
	uint32_t word = word_of(code);

	(void)bytes;
	if (is_atomic(word))
		return INSN_LOCKED;
	if (is_exclusive_store(word))
		return INSN_EXCLUSIVE;
	if (is(word, 0x3bc00000, 0x28000000))	/* stnp */
		return INSN_STREAMING;
	if (is_prefetch(word))
		return INSN_PREFETCH;
	if (is_fence(word))
		return INSN_FENCE;
	return branch(word);
}

static uint64_t jump_target_arm64(const unsigned char *code, size_t bytes, uint64_t end)
{
	uint32_t word = word_of(code);

	if (!is(word, 0xfc000000, 0x14000000))
		return 0;
	return end - bytes + (uint64_t)((int64_t)((uint64_t)word << 38) >> 36);
}

static enum mark mark_arm64(const unsigned char *code, size_t bytes)
{
	uint32_t word = word_of(code);

	(void)bytes;
	if (!is(word, HINT_MASK, HINT))
		return MARK_NONE;
	switch (word >> 5 & 0x7f) {
	case MARK_HINT_BEGIN:
		return MARK_IS_BEGIN;
	case MARK_HINT_END:
		return MARK_IS_END;
	case MARK_HINT_PAUSE:
		return MARK_IS_PAUSE;
	case MARK_HINT_GO_ON:
		return MARK_IS_GO_ON;
	case MARK_HINT_BIT:
		return MARK_IS_0;
	case MARK_HINT_BIT | 1:
		return MARK_IS_1;
	}
	return MARK_NONE;
}

const struct isa isa_arm64 = {
	.target = "aarch64",
	.most_bytes = 4,
	.classify = classify_arm64,
	.jump_target = jump_target_arm64,
	.mark = mark_arm64,
};
