// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a hosted kernel needs on arm64: the CPU features that it may use, and the
 * variables of this architecture.
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

/* Start of memory, which places the memmap and the direct map. arch/arm64/mm/init.c */
s64 memstart_addr;

/* Used only for addresses of the kernel's image. arch/arm64/mm/mmu.c */
u64 kimage_voffset __weak;

/* Filled by host_boot_machine(). arch/arm64/kernel/cpufeature.c */
DECLARE_BITMAP(system_cpucaps, ARM64_NCAPS);

/*
 * Capabilities that code at EL0 may use, too, and the hwcaps that announce them.
 * Capabilities that are not listed are off, as on the oldest CPU. Those that only
 * a kernel can use are never set.
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

/* arch/arm64/kernel/alternative.c: the callback for alternatives that are only nops. */
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
 * The memmap begins at VMEMMAP_START with the struct page of the first frame.
 * Experiments place theirs there.
 */
void host_place_map(unsigned long pfn, void *map)
{
	memstart_addr = (s64)(pfn - ((unsigned long)map - VMEMMAP_START) / sizeof(struct page))
			<< PAGE_SHIFT;
}

/* memstart_addr determines the direct map, too, so only check that @ram agrees. */
void host_place_contents(unsigned long pfn, void *ram)
{
	WARN_ON(ram && __va(pfn << PAGE_SHIFT) != ram);	/* fails the launch */
}
