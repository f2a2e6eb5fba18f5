/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REAM_ISA_H
#define REAM_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Marks among instructions; see marks.h. */
enum mark {
	MARK_NONE, MARK_IS_BEGIN, MARK_IS_END, MARK_IS_0, MARK_IS_1, MARK_IS_PAUSE, MARK_IS_GO_ON,
};

/**
 * struct isa - decoder of the instructions of an architecture
 * @target: QEMU's name of the architecture.
 * @most_bytes: Maximum length of an instruction.
 * @calls_push: Whether calls push the return address, and returns pop it.
 * @classify: Returns the enum insn_class bits of an instruction; 0 for most.
 * @jump_target: Returns the target of a direct unconditional jump, which ends at
 *	@end. 0 for all other instructions.
 * @mark: Returns which mark an instruction is.
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
