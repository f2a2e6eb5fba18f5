/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: patching of static keys and static calls on x86-64. */
#ifndef REAM_PATCHING_H
#define REAM_PATCHING_H

#include <linux/bug.h>
#include <linux/jump_label.h>
#include <linux/string.h>
#include "host.h"

/* Opcodes and no-operations. Source: Intel SDM volume 2, JMP and NOP. */
#define JMP_REL8 0xeb
#define JMP_REL32 0xe9
#define SHORT_BYTES 2
#define LONG_BYTES 5

/* Patch the code at @entry to a jump to its target, or to a no-op. */
static inline void host_patch_jump(struct jump_entry *entry, bool jumps)
{
	static const u8 short_nop[SHORT_BYTES] = { 0x66, 0x90 };
	static const u8 long_nop[LONG_BYTES] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	unsigned long site = jump_entry_code(entry);
	long distance = jump_entry_target(entry) - site;
	u8 first = *(const u8 *)site;
	u8 code[LONG_BYTES];

	/* objtool has chosen the short form where the distance permits it. */
	if (first == JMP_REL8 || first == short_nop[0]) {
		code[0] = JMP_REL8;
		code[1] = distance - SHORT_BYTES;
		host_patch((void *)site, jumps ? code : short_nop, SHORT_BYTES);
	} else {
		s32 displacement = distance - LONG_BYTES;

		WARN_ON(first != JMP_REL32 && first != long_nop[0]);
		code[0] = JMP_REL32;
		memcpy(code + 1, &displacement, sizeof(displacement));
		host_patch((void *)site, jumps ? code : long_nop, LONG_BYTES);
	}
}

/* Patch the trampoline of a static call to jump to @function. */
static inline void host_patch_call(void *trampoline, void *function)
{
	s32 displacement = function - (trampoline + LONG_BYTES);

	WARN_ON(*(const u8 *)trampoline != JMP_REL32);
	host_patch(trampoline + 1, &displacement, sizeof(displacement));
}

#endif
