// SPDX-License-Identifier: GPL-2.0-only
/*
 * What kind of instruction of x86-64 it is, from its bytes.
 *
 * Source: Intel SDM volume 2, chapter 2 and the opcode maps of appendix A.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "classify.h"
#include "isa.h"
#include "marks.h"

#define PREFIX_LOCK 0xf0
#define VEX2 0xc5
#define VEX3 0xc4
#define EVEX 0x62

struct insn {
	const unsigned char *code, *end;
	unsigned int map;	/* 0: one byte; 1: 0f; 2: 0f 38; 3: 0f 3a */
	unsigned char opcode;
	bool locks;
	bool repeats;
	bool is_vector;		/* VEX or EVEX: opcodes mean other things there */
};

static bool is_legacy_prefix(unsigned char byte)
{
	switch (byte) {
	case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65:
	case 0x66: case 0x67: case PREFIX_LOCK: case 0xf2: case 0xf3:
		return true;
	}
	return false;
}

/* Their prefixes hold the map, and nothing of what we ask stands before them. */
static bool read_vector(struct insn *insn)
{
	size_t bytes = (size_t)(insn->end - insn->code);

	if (*insn->code == VEX2 && bytes > 2) {
		insn->map = 1;
		insn->opcode = insn->code[2];
	} else if (*insn->code == VEX3 && bytes > 3) {
		insn->map = insn->code[1] & 0x1f;
		insn->opcode = insn->code[3];
	} else if (*insn->code == EVEX && bytes > 4) {
		insn->map = insn->code[1] & 0x07;
		insn->opcode = insn->code[4];
	} else {
		return false;
	}
	insn->is_vector = true;
	return true;
}

static bool read_opcode(struct insn *insn)
{
	for (; insn->code < insn->end && is_legacy_prefix(*insn->code); insn->code++) {
		insn->locks |= *insn->code == PREFIX_LOCK;
		insn->repeats |= *insn->code == 0xf2 || *insn->code == 0xf3;
	}
	if (insn->code < insn->end && (*insn->code & 0xf0) == 0x40)	/* REX */
		insn->code++;
	if (insn->code == insn->end)
		return false;
	if (read_vector(insn))
		return true;
	if (*insn->code == 0x0f && ++insn->code < insn->end) {
		insn->map = 1;
		if ((*insn->code == 0x38 || *insn->code == 0x3a) &&
		    insn->code + 1 < insn->end)
			insn->map = *insn->code++ == 0x38 ? 2 : 3;
	}
	if (insn->code == insn->end)
		return false;
	insn->opcode = *insn->code++;
	return true;
}

/* Of an instruction without a vector prefix: its byte of operands, as xchg and ff have it. */
static unsigned char operands(const struct insn *insn)
{
	return insn->code < insn->end ? *insn->code : 0xc0;
}

static unsigned int classify_one_byte(const struct insn *insn)
{
	unsigned char opcode = insn->opcode, modrm = operands(insn);
	unsigned int extension = modrm >> 3 & 7;

	if ((opcode & 0xfe) == 0x86)	/* xchg locks with memory, prefix or not */
		return modrm < 0xc0 ? INSN_LOCKED : 0;
	if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0)
		return INSN_CONDITIONAL;
	if (opcode == 0xe9 || opcode == 0xeb)
		return INSN_JUMP;
	if (opcode == 0xe8)
		return INSN_JUMP | INSN_CALL;
	if (opcode == 0xc2 || opcode == 0xc3)
		return INSN_JUMP | INSN_RETURN;
	if (opcode == 0xff && extension >= 2 && extension <= 5)
		return INSN_JUMP | (extension < 4 ? INSN_CALL : 0) |
		       (modrm < 0xc0 ? INSN_INDIRECT : 0);
	if (insn->repeats && ((opcode >= 0xa4 && opcode <= 0xa7) ||
			      (opcode >= 0xaa && opcode <= 0xaf)))
		return INSN_REPEATED;
	return 0;
}

static unsigned int classify_two_bytes(const struct insn *insn)
{
	switch (insn->opcode) {
	case 0x2b: case 0xe7:	/* movntp[sd], movnt[dq]q, and their vector forms */
		return INSN_STREAMING;
	}
	if (insn->is_vector)
		return 0;
	switch (insn->opcode) {
	case 0xc3:	/* movnti */
		return INSN_STREAMING;
	case 0x0d: case 0x18:
		return INSN_PREFETCH;
	case 0xae:
		return operands(insn) >= 0xe8 ? INSN_FENCE : 0;
	}
	return (insn->opcode & 0xf0) == 0x80 ? INSN_CONDITIONAL : 0;
}

static unsigned int classify_x86_64(const unsigned char *code, size_t bytes)
{
	struct insn insn = { .code = code, .end = code + bytes };
	unsigned int found = 0;

	if (!read_opcode(&insn))
		return 0;
	if (insn.map == 0)
		found = classify_one_byte(&insn);
	else if (insn.map == 1)
		found = classify_two_bytes(&insn);
	else if (insn.map == 2 && !insn.is_vector && (insn.opcode & 0xfe) == 0xf8)
		found = INSN_STREAMING;	/* movdir64b, movdiri */
	return found | (insn.locks ? INSN_LOCKED : 0);
}

static uint64_t jump_target_x86_64(const unsigned char *code, size_t bytes, uint64_t end)
{
	int32_t far;

	if (bytes == 2 && code[0] == 0xeb)
		return end + (uint64_t)(int64_t)(int8_t)code[1];
	if (bytes != 1 + sizeof(far) || code[0] != 0xe9)
		return 0;
	memcpy(&far, code + 1, sizeof(far));
	return end + (uint64_t)(int64_t)far;
}

static enum mark mark_x86_64(const unsigned char *code, size_t bytes)
{
	/* Of nopl displacement(%rax), before the displacement. */
	static const unsigned char opcode[] = { 0x0f, 0x1f, 0x80 };
	int32_t displacement;

	if (bytes != sizeof(opcode) + sizeof(displacement) || memcmp(code, opcode, sizeof(opcode)))
		return MARK_NONE;
	memcpy(&displacement, code + sizeof(opcode), sizeof(displacement));
	switch (displacement) {
	case MARK_BEGIN:
		return MARK_IS_BEGIN;
	case MARK_END:
		return MARK_IS_END;
	case MARK_PAUSE:
		return MARK_IS_PAUSE;
	case MARK_GO_ON:
		return MARK_IS_GO_ON;
	case MARK_BIT & ~1:
		return MARK_IS_0;
	case MARK_BIT | 1:
		return MARK_IS_1;
	}
	return MARK_NONE;
}

const struct isa isa_x86_64 = {
	.target = "x86_64",
	.most_bytes = 15,
	.calls_push = true,
	.classify = classify_x86_64,
	.jump_target = jump_target_x86_64,
	.mark = mark_x86_64,
};
