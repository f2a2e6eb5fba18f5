// SPDX-License-Identifier: GPL-2.0-only
/*
 * Static keys and static calls of hosted kernels, which deliberately differ from
 * the kernel's own. An experiment uses them if its file `objects` lists
 * ream/patching.o.
 *
 * Code is patched as in the kernel. The kernel also protects other CPUs from
 * executing a partly written instruction (INT3, IPIs). Here the other CPUs are
 * idle while a key or a call changes.
 */
#include <linux/jump_label.h>
#include <linux/static_call.h>
#include "kernel.h"
#include "patching.h"

/* Jump entries of this variant. native/host/variant.lds */
extern struct jump_entry host_jump_table[], host_jump_table_end[];

static void set_key(struct static_key *key, bool enabled)
{
	struct jump_entry *entry;

	atomic_set(&key->enabled, enabled);
	for (entry = host_jump_table; entry < host_jump_table_end; entry++)
		if (jump_entry_key(entry) == key)
			host_patch_jump(entry, enabled ^ jump_entry_is_branch(entry));
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

#ifdef CONFIG_HAVE_STATIC_CALL
/*
 * Only the trampoline is patched. The kernel also patches the call sites, so each
 * call costs one more jump here.
 */
void __static_call_update(struct static_call_key *key, void *trampoline,
			  void *function)
{
	HOST_STUB("custom");
	WRITE_ONCE(key->func, function);
	host_patch_call(trampoline, function);
}
#endif
