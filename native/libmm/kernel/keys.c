// SPDX-License-Identifier: GPL-2.0-only
/* Static keys patch the kernel's code, as on a booted machine. */
#include <linux/jump_label.h>
#include <linux/static_call.h>
#include "hosted.h"
#include "patching.h"

void arch_jump_label_transform(struct jump_entry *entry, enum jump_label_type type)
{
	HOST_STUB("custom");
	host_patch_jump(entry, type == JUMP_LABEL_JMP);
}

bool arch_jump_label_transform_queue(struct jump_entry *entry, enum jump_label_type type)
{
	HOST_STUB("custom");
	host_patch_jump(entry, type == JUMP_LABEL_JMP);
	return true;
}

int arch_jump_entry_size(struct jump_entry *entry)
{
	u8 first = *(const u8 *)jump_entry_code(entry);

	HOST_STUB("duplicated");
	return first == JMP_REL8 || first == 0x66 ? SHORT_BYTES : LONG_BYTES;
}
