// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a hosted kernel needs on x86-64: the CPU features that it may use, the
 * variables of this architecture, and symbols of its linker script.
 */
#include <linux/bug.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/pgtable.h>
#include <linux/preempt.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>
#include "kernel.h"

/*
 * Addresses of the memmap and of the contents of frames. They are invalid until
 * an experiment sets them. arch/x86/kernel/head64.c
 */
unsigned long vmemmap_base;
unsigned long page_offset_base = 1UL << 62;

/* __pa() always reads it, but uses it only for addresses of the kernel's image. */
unsigned long phys_base;

/* Page tables have four levels, because LA57 is not an allowed feature. */
unsigned int pgdir_shift = 39;
unsigned int ptrs_per_p4d = 1;

/* Zero would mask out the present bit. Weak, because arch/x86/mm/init.o may be linked. */
pteval_t __supported_pte_mask __weak = ~0;
pteval_t __default_kernel_pte_mask __weak = ~0;

/* Filled by host_boot_machine() from CPUID. arch/x86/kernel/setup.c */
struct cpuinfo_x86 boot_cpu_data;

/*
 * Accessed through the GS base of a thread. The preemption count is that of a
 * booted CPU that may be preempted. Zero would mean that it needs to reschedule.
 */
DEFINE_PER_CPU_READ_MOSTLY(unsigned long, this_cpu_off);
#ifdef HAVE_PCPU_HOT
DEFINE_PER_CPU_ALIGNED(struct pcpu_hot, pcpu_hot) = { .preempt_count = PREEMPT_ENABLED };
#else
DEFINE_PER_CPU_CACHE_HOT(int, cpu_number);
DEFINE_PER_CPU_CACHE_HOT(struct task_struct *, current_task);
#ifdef HAVE_PREEMPT_COUNT_LONG
DEFINE_PER_CPU_CACHE_HOT(unsigned long, __preempt_count) = PREEMPT_ENABLED;
#else
DEFINE_PER_CPU_CACHE_HOT(int, __preempt_count) = PREEMPT_ENABLED;
#endif
#endif

/* The kernel's linker script makes this alias. arch/x86/kernel/vmlinux.lds.S */
#ifdef HAVE_PCPU_HOT
asm(".globl const_pcpu_hot\n.set const_pcpu_hot, pcpu_hot");
#else
asm(".globl const_current_task\n.set const_current_task, current_task");
#endif

/*
 * Features that a program in ring 3 may use. A booted kernel has more. Privileged
 * features (SMAP, LA57, ...) stay off, because their instructions would fault.
 */
static const u16 allowed_features[] = {
	X86_FEATURE_ALWAYS, X86_FEATURE_REP_GOOD, X86_FEATURE_ERMS,
	X86_FEATURE_FSRM, X86_FEATURE_FSRS, X86_FEATURE_CLFLUSH,
	X86_FEATURE_CLFLUSHOPT, X86_FEATURE_CLWB, X86_FEATURE_MOVDIRI,
	X86_FEATURE_MOVDIR64B, X86_FEATURE_POPCNT, X86_FEATURE_XMM,
	X86_FEATURE_XMM2, X86_FEATURE_3DNOWPREFETCH, X86_FEATURE_CX8,
	X86_FEATURE_CX16, X86_FEATURE_BMI1, X86_FEATURE_BMI2,
};

/* Synthetic features: the kernel sets both on every x86-64 CPU of this age. */
static const u16 synthetic_features[] = {
	X86_FEATURE_ALWAYS, X86_FEATURE_REP_GOOD,
};

static bool cpuid_has(const struct host_machine *machine, u16 feature)
{
	return machine->capability[feature / 32] & BIT(feature % 32);
}

const unsigned int *host_boot_machine(const struct host_machine *machine)
{
	unsigned int i;

	BUILD_BUG_ON(NCAPINTS != HOST_NR_CAPABILITY_WORDS);
	for (i = 0; i < ARRAY_SIZE(allowed_features); i++)
		if (cpuid_has(machine, allowed_features[i]))
			set_cpu_cap(&boot_cpu_data, allowed_features[i]);
	for (i = 0; i < ARRAY_SIZE(synthetic_features); i++)
		set_cpu_cap(&boot_cpu_data, synthetic_features[i]);
	boot_cpu_data.x86_clflush_size = machine->clflush_bytes;
	boot_cpu_data.x86_cache_alignment = machine->clflush_bytes;
	return (const unsigned int *)boot_cpu_data.x86_capability;
}

void host_enter_cpu(unsigned int cpu, unsigned long per_cpu_offset,
		    struct task_struct *task)
{
	this_cpu_write(this_cpu_off, per_cpu_offset);
#ifdef HAVE_PCPU_HOT
	this_cpu_write(pcpu_hot.cpu_number, cpu);
#else
	this_cpu_write(cpu_number, cpu);
#endif
	host_set_current(task);
}

void host_place_map(unsigned long pfn, void *map)
{
	vmemmap_base = (unsigned long)map - pfn * sizeof(struct page);
}

void host_place_contents(unsigned long pfn, void *ram)
{
	page_offset_base = (unsigned long)ram - (pfn << PAGE_SHIFT);
}

#ifdef HAVE_BUG_FORMAT
/* arch/x86/entry/entry.S: the trap of a WARN() with a message, which boot patches in. */
asm(".globl __SCT__WARN_trap\n"
	"__SCT__WARN_trap: ud1 (%edx), %rdi\n"
	"ret");
#endif
