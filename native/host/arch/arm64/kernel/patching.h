/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: patching of static keys on arm64, which has no static calls. */
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

/* Patch the code at @entry to a branch to its target, or to a nop. */
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
