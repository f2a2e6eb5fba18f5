/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: what a static key of arm64 is patched to; it has no static calls. */
#ifndef REAM_PATCHING_H
#define REAM_PATCHING_H

#include <linux/bits.h>
#include <linux/bug.h>
#include <linux/jump_label.h>
#include "host.h"

/* Source: Arm ARM (DDI 0487), C6.2, B and NOP. */
#define INSN_B 0x14000000U
#define INSN_B_DISTANCE GENMASK(25, 0)
#define INSN_NOP 0xd503201fU

/* Make the code at @entry a branch to its target, or nothing. */
static inline void host_patch_jump(struct jump_entry *entry, bool jumps)
{
	unsigned long site = jump_entry_code(entry);
	long distance = jump_entry_target(entry) - site;
	u32 branch = INSN_B | (distance / (long)sizeof(u32) & INSN_B_DISTANCE);
	u32 nop = INSN_NOP, was = *(const u32 *)site;

	WARN_ON(was != branch && was != nop);
	host_patch((void *)site, jumps ? &branch : &nop, sizeof(u32));
}

#endif
