/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REAM_ISA_H
#define REAM_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an instruction may be besides; see marks.h. */
enum mark {
	MARK_NONE, MARK_IS_BEGIN, MARK_IS_END, MARK_IS_0, MARK_IS_1, MARK_IS_PAUSE, MARK_IS_GO_ON,
};

/**
 * struct isa - how instructions of an architecture are read
 * @target: As QEMU calls the architecture.
 * @most_bytes: Of an instruction.
 * @calls_push: Whether a call stores where it came from, and a return loads it.
 * @classify: The bits of an instruction, enum insn_class; 0 of most.
 * @jump_target: Where a direct jump that is always taken leads; @end is behind
 *	it. 0 of all else.
 * @mark: Which mark it is.
 */
struct isa {
	const char *target;
	unsigned int most_bytes;
	bool calls_push;
	unsigned int (*classify)(const unsigned char *code, size_t bytes);
	uint64_t (*jump_target)(const unsigned char *code, size_t bytes, uint64_t end);
	enum mark (*mark)(const unsigned char *code, size_t bytes);
};

extern const struct isa isa_x86_64, isa_arm64;

#endif
