// SPDX-License-Identifier: GPL-2.0-only
/*
 * The functions on page table entries of one architecture's headers, one by one.
 * kbuild compiles this; main.c calls it in a plain program.
 */
#ifdef CONFIG_X86_64
#include <arch/x86/mm/pgtable.c>
#endif

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/pgtable.h>

#include "arch.h"

static u64 op_encode(u64 prot, u64 pfn)
{
	return pte_val(pfn_pte((unsigned long)pfn, __pgprot(prot)));
}

static u64 op_decode(u64 entry, u64 unused)
{
	return pte_pfn(__pte(entry));
}

static u64 op_advance(u64 entry, u64 nr)
{
	return pte_val(pte_advance_pfn(__pte(entry), (unsigned long)nr));
}

static u64 op_next(u64 entry, u64 unused)
{
	return pte_val(pte_next_pfn(__pte(entry)));
}

static u64 op_none(u64 entry, u64 unused)
{
	return !!pte_none(__pte(entry));
}

/* The bytes of an entry in memory, the first one lowest. */
static u64 op_stored(u64 entry, u64 unused)
{
	pte_t pte = __pte(entry);
	const unsigned char *byte = (const unsigned char *)&pte;
	u64 bytes = 0;

	for (unsigned int i = 0; i < sizeof(pte); i++)
		bytes |= (u64)byte[i] << 8 * i;
	return bytes;
}

static u64 op_word_bits(u64 unused, u64 unused2)
{
	return 8 * sizeof(pte_t);
}

static u64 op_page_shift(u64 unused, u64 unused2)
{
	return PAGE_SHIFT;
}

#ifdef PFN_PTE_SHIFT
static u64 op_pfn_pte_shift(u64 unused, u64 unused2)
{
	return PFN_PTE_SHIFT;
}
#endif

#ifdef CONFIG_X86_64
#define DEFINE_TEST(name)						\
	static u64 op_##name(u64 entry, u64 unused)			\
	{								\
		return !!pte_##name(__pte(entry));			\
	}

#define DEFINE_CHANGE(name)						\
	static u64 op_##name(u64 entry, u64 unused)			\
	{								\
		return pte_val(pte_##name(__pte(entry)));		\
	}

DEFINE_TEST(present)
DEFINE_TEST(young)
DEFINE_TEST(dirty)
DEFINE_TEST(write)
DEFINE_TEST(special)
DEFINE_TEST(uffd_wp)
DEFINE_TEST(soft_dirty)
DEFINE_CHANGE(wrprotect)
DEFINE_CHANGE(mkclean)
DEFINE_CHANGE(mkold)
DEFINE_CHANGE(mkdirty)
DEFINE_CHANGE(clear_uffd_wp)
DEFINE_CHANGE(mkuffd_wp)
DEFINE_CHANGE(clear_soft_dirty)

static u64 op_mkwrite(u64 entry, u64 vm_flags)
{
	struct vm_area_struct vma;

	vm_flags_init(&vma, vm_flags ? VM_SHADOW_STACK : 0);
	return pte_val(pte_mkwrite(__pte(entry), &vma));
}

static u64 op_swap_entry(u64 type, u64 offset)
{
	swp_entry_t entry = __swp_entry(type, offset);

	return pte_val(__swp_entry_to_pte(entry));
}

/* Variables of the headers; a protection loses the bits that are not here. */
struct cpuinfo_x86 boot_cpu_data;
pteval_t __supported_pte_mask = ~0ULL;
#endif

#define OP(name) { #name, op_##name }
const struct ream_op ream_ops[] = {
	OP(encode),
	OP(decode),
	OP(advance),
	OP(next),
	OP(none),
	OP(stored),
	OP(word_bits),
	OP(page_shift),
#ifdef PFN_PTE_SHIFT
	OP(pfn_pte_shift),
#endif
#ifdef CONFIG_X86_64
	OP(present),
	OP(young),
	OP(dirty),
	OP(write),
	OP(special),
	OP(uffd_wp),
	OP(soft_dirty),
	OP(wrprotect),
	OP(mkclean),
	OP(mkold),
	OP(mkdirty),
	OP(mkwrite),
	OP(clear_uffd_wp),
	OP(mkuffd_wp),
	OP(clear_soft_dirty),
	OP(swap_entry),
#endif
};

const unsigned int ream_nr_ops = ARRAY_SIZE(ream_ops);

void ream_boot(int feature)
{
#ifdef CONFIG_X86_64
	if (feature)
		set_cpu_cap(&boot_cpu_data, X86_FEATURE_SHSTK);
#endif
#ifdef CONFIG_S390
	/* A processor that knows no-execute: otherwise entries lose it. */
	if (feature)
		get_lowcore()->machine_flags |= MACHINE_FLAG_NX;
#endif
}
