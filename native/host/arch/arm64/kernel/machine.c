// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a hosted kernel needs on arm64: which features of the CPU it may use,
 * and variables that are this architecture's.
 */
#include <linux/bug.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/thread_info.h>
#include <asm/alternative.h>
#include <asm/cpufeature.h>
#include <asm/hwcap.h>
#include <asm/insn-def.h>
#include <asm/memory.h>
#include "kernel.h"

/* Where memory begins, which places the map and the contents. arch/arm64/mm/init.c */
s64 memstart_addr;

/* Used for addresses of the kernel's image alone. arch/arm64/mm/mmu.c */
u64 kimage_voffset __weak;

/* Filled by host_boot_machine(). arch/arm64/kernel/cpufeature.c */
DECLARE_BITMAP(system_cpucaps, ARM64_NCAPS);

/*
 * Capabilities of the CPU that code of EL0 may use, too, by what a program is
 * told of them; and those that a kernel alone sees, of which nothing is done
 * here but what the oracle knows. What is not listed is off, as on the oldest CPU.
 */
static const struct {
	u16 capability;
	unsigned long hwcap;
} allowed[] = {
	{ ARM64_HAS_LSE_ATOMICS, HWCAP_ATOMICS },
};

const unsigned int *host_boot_machine(const struct host_machine *machine)
{
	unsigned int i;

	BUILD_BUG_ON(HOST_NR_CAPABILITY_WORDS * 32 < ARM64_NCAPS);
	for (i = 0; i < ARRAY_SIZE(allowed); i++)
		if (machine->capability[0] & allowed[i].hwcap)
			__set_bit(allowed[i].capability, system_cpucaps);
	return (const unsigned int *)system_cpucaps;
}

/* What an alternative of no instructions is written by. arch/arm64/kernel/alternative.c */
void alt_cb_patch_nops(struct alt_instr *alt, __le32 *from, __le32 *to, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		to[i] = cpu_to_le32(0xd503201f);
}

void host_enter_cpu(unsigned int cpu, unsigned long per_cpu_offset,
		    struct task_struct *task)
{
	write_sysreg(per_cpu_offset, tpidr_el1);
	host_set_current(task);
	task_thread_info(task)->cpu = cpu;
}

/*
 * The map begins with the descriptor of the first frame: VMEMMAP_START of a
 * hosted kernel is where experiments put theirs.
 */
void host_place_map(unsigned long pfn, void *map)
{
	memstart_addr = (s64)(pfn - ((unsigned long)map - VMEMMAP_START) / sizeof(struct page))
			<< PAGE_SHIFT;
}

/* They follow from the same variable: what is asked for has to be that. */
void host_place_contents(unsigned long pfn, void *ram)
{
	WARN_ON(ram && __va(pfn << PAGE_SHIFT) != ram);	/* fails the launch */
}
