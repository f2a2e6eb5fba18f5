// SPDX-License-Identifier: GPL-2.0-only
/*
 * Static keys and static calls of hosted kernels, deliberately not the
 * kernel's own; an experiment has them if its file `objects` says
 * ream/patching.o.
 *
 * Code is patched, as the kernel patches it. The kernel takes care that other
 * CPUs meet no half of an instruction (INT3, IPIs); here they have nothing to
 * do while a key or a call changes.
 */
#include <linux/jump_label.h>
#include <linux/static_call.h>
#include <linux/string.h>
#include "kernel.h"

/* The variant's own entries. native/host/variant.lds */
extern struct jump_entry host_jump_table[], host_jump_table_end[];

/* Opcodes and no-operations. Source: Intel SDM volume 2, JMP and NOP. */
#define JMP_REL8 0xeb
#define JMP_REL32 0xe9
#define SHORT_BYTES 2
#define LONG_BYTES 5

static const u8 short_nop[SHORT_BYTES] = { 0x66, 0x90 };
static const u8 long_nop[LONG_BYTES] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

static void patch_site(struct jump_entry *entry, bool jumps)
{
	unsigned long site = jump_entry_code(entry);
	long distance = jump_entry_target(entry) - site;
	u8 first = *(const u8 *)site;
	u8 code[LONG_BYTES];

	/* objtool has made each as short as its distance allows. */
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

static void set_key(struct static_key *key, bool enabled)
{
	struct jump_entry *entry;

	atomic_set(&key->enabled, enabled);
	for (entry = host_jump_table; entry < host_jump_table_end; entry++)
		if (jump_entry_key(entry) == key)
			patch_site(entry, enabled ^ jump_entry_is_branch(entry));
}

void static_key_enable(struct static_key *key)
{
	HOST_STUB("custom");
	if (!atomic_read(&key->enabled))
		set_key(key, true);
}

void static_key_disable(struct static_key *key)
{
	HOST_STUB("custom");
	if (atomic_read(&key->enabled))
		set_key(key, false);
}

/*
 * Only the trampoline is changed. The kernel changes calls themselves, too,
 * so each call costs one jump more here.
 */
void __static_call_update(struct static_call_key *key, void *trampoline,
			  void *function)
{
	s32 displacement = function - (trampoline + LONG_BYTES);

	HOST_STUB("custom");
	WRITE_ONCE(key->func, function);
	WARN_ON(*(const u8 *)trampoline != JMP_REL32);
	host_patch(trampoline + 1, &displacement, sizeof(displacement));
}
