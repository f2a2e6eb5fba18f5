// SPDX-License-Identifier: GPL-2.0-only
/*
 * Patch the code of kernels with mitigations against speculation, or with Xen
 * guest support, as boot does: returns, indirect branches, and calls through
 * pv_ops. On a machine the CPU decides how. Here words in host_boot_words() do.
 * Without them the code is that of a CPU that needs no mitigation.
 */
#include <linux/init.h>
#include <linux/string.h>
#include <asm/cpufeature.h>
#include <asm/kvm_para.h>
#include <asm/nospec-branch.h>
#include <asm/paravirt.h>
#include "hosted.h"
#include "patched.h"

/* Opcodes. Source: Intel SDM volume 2, CALL, JMP, RET, INT3 and NOP. */
#define CALL_REL32 0xe8
#define JMP_REL32 0xe9
#define RELATIVE_BYTES 5
#define RETURN 0xc3
#define TRAP 0xcc
#define IGNORED_PREFIX 0x2e	/* makes a call of a thunk as long as one of a high register */

/* Index in @known of the word that boot asks for by "NAME=ONE". The default is the first. */
static unsigned int chosen(const char *name, const char *const *known)
{
	const char *asked = strstr(host_boot_words(), name);
	unsigned int i;

	if (!asked)
		return 0;
	asked += strlen(name);
	for (i = 0; known[i]; i++)
		if (strlen(known[i]) == strcspn(asked, " ") && str_has_prefix(asked, known[i]))
			return i;
	give_up("boot %s%s: there is no such way", name, asked);
}

#ifdef CONFIG_MITIGATION_RETPOLINE
extern s32 __retpoline_sites[], __retpoline_sites_end[];	/* libmm.lds */

/* Turn a branch through a thunk into "call *%REG" or "jmp *%REG": patch_retpoline() of 6.12. */
static void __init patch_indirect(u8 *at)
{
	static const u8 nop3[] = { 0x0f, 0x1f, 0x00 }, nop2[] = { 0x66, 0x90 };
	u8 *branch = at + (*at == IGNORED_PREFIX), *end = branch + RELATIVE_BYTES;
	unsigned long distance = end + *(s32 *)(branch + 1) - (u8 *)__x86_indirect_thunk_array;
	unsigned int reg = distance / sizeof(retpoline_thunk_t);
	bool is_call = *branch == CALL_REL32;

	if (reg >= 16 || (!is_call && *branch != JMP_REL32))
		give_up("the indirect branch at %#lx is neither a call nor a jump",
			(unsigned long)at);
	if (reg >= 8)
		*at++ = 0x41;
	*at++ = 0xff;
	*at++ = (is_call ? 0xd0 : 0xe0) + reg % 8;
	if (!is_call)
		memset(at, TRAP, end - at);
	else if (end - at == sizeof(nop3))
		memcpy(at, nop3, sizeof(nop3));
	else
		memcpy(at, nop2, end - at);
}

static bool __init patch_all_indirect(void)
{
	static const char *const ways[] = { "call", "retpoline", NULL };
	s32 *site;

	if (chosen("ream.indirect=", ways))
		return true;
	for (site = __retpoline_sites; site < __retpoline_sites_end; site++)
		patch_indirect((u8 *)site + *site);
	return false;
}
#else
static bool __init patch_all_indirect(void)
{
	return false;
}
#endif

#ifdef CONFIG_MITIGATION_RETHUNK
extern s32 __return_sites[], __return_sites_end[];	/* libmm.lds */

/* As apply_returns(). Untraining at kernel entry is not part of a return. */
static void __init patch_all_returns(void)
{
	static const char *const ways[] = { "ret", "retbleed", "srso", "srso_alias", NULL };
	u8 *const thunks[] = {
		NULL, (u8 *)retbleed_return_thunk, (u8 *)srso_return_thunk,
		(u8 *)srso_alias_return_thunk,
	};
	u8 *thunk = thunks[chosen("ream.returns=", ways)];
	s32 *site;

	for (site = __return_sites; site < __return_sites_end; site++) {
		u8 *at = (u8 *)site + *site, *end = at + RELATIVE_BYTES;
		s32 *distance = (s32 *)(at + 1);

		if (*at != JMP_REL32 || end + *distance != (u8 *)__x86_return_thunk)
			give_up("the return at %#lx goes to no thunk", (unsigned long)at);
		if (thunk) {
			*distance = thunk - end;
		} else {
			*at = RETURN;
			memset(at + 1, TRAP, RELATIVE_BYTES - 1);
		}
	}
}
#else
static void __init patch_all_returns(void)
{
}
#endif

#ifdef CONFIG_PARAVIRT
/* The idle functions in pv_ops use this key: arch/x86/kernel/cpu/bugs.c */
DEFINE_STATIC_KEY_FALSE(cpu_buf_idle_clear);

#ifdef CONFIG_KVM_GUEST
/* arch/x86/kernel/kvm.c: there are no asynchronous page faults of a host. */
DEFINE_STATIC_KEY_FALSE(kvm_async_pf_enabled);
#endif

enum pv_way { PV_INLINE, PV_DIRECT, PV_INDIRECT };

/* "inline" is what boot does without Xen, "direct" with Xen. "indirect" is as compiled. */
static enum pv_way __init pv_way(void)
{
	static const char *const ways[] = { "inline", "direct", "indirect", NULL };

	return chosen("ream.pv=", ways);
}

/* arch/x86/kernel/alternative.c: calls of this function are patched out. */
asm(".pushsection .text\n"
	".globl nop_func\n"
	".type nop_func, @function\n"
	"nop_func:\n"
	"ret\n"
	".size nop_func, . - nop_func\n"
	".popsection");
#endif

bool wants_huge_map(void)
{
	static const char *const ways[] = { "4K", "2M", NULL };

	return chosen("ream.vmemmap=", ways);
}

bool wants_no_groups(void)
{
	static const char *const ways[] = { "on", "off", NULL };

	return chosen("ream.memcg=", ways);
}

const unsigned int *__init patch_kernel(const unsigned int *features)
{
	static unsigned int chosen_by[HOST_NR_CAPABILITY_WORDS];

	memcpy(chosen_by, features, sizeof(chosen_by));
	patch_all_returns();
	if (patch_all_indirect())
		__set_bit(X86_FEATURE_RETPOLINE, (unsigned long *)chosen_by);
#ifdef CONFIG_PARAVIRT
	if (pv_way() != PV_INLINE)
		__set_bit(X86_FEATURE_XENPV, (unsigned long *)chosen_by);
	if (pv_way() != PV_INDIRECT)
		host_make_calls_direct(nop_func);
	/* Without PARAVIRT_XXL it is a required feature, so only these kernels test it. */
	set_cpu_cap(&boot_cpu_data, X86_FEATURE_PSE);
#endif
	return chosen_by;
}
