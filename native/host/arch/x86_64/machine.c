// SPDX-License-Identifier: GPL-2.0-only
/* x86-64: description of the CPU, and access to the context of a signal. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "program.h"

/*
 * Fill those words of x86_capability that are plain CPUID registers.
 * Source: arch/x86/include/asm/cpufeature.h, enum cpuid_leafs.
 */
void arch_describe_cpu(struct host_machine *machine)
{
	unsigned int *word = machine->capability;
	unsigned int a, b, c, d;

	if (__get_cpuid(1, &a, &b, &c, &d)) {
		word[0] = d;
		word[4] = c;
		machine->clflush_bytes = (b >> 8 & 0xff) * 8;
	}
	if (__get_cpuid(0x80000001, &a, &b, &c, &d)) {
		word[1] = d;
		word[6] = c;
	}
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
		unsigned int subleaves = a;

		word[9] = b;
		word[16] = c;
		word[18] = d;
		if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
			word[12] = a;
	}
}

/* The kernels are configured so that their code needs no patching. */
void arch_host_kernels(void)
{
}

void arch_enter_cpu(unsigned long per_cpu_offset)
{
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, per_cpu_offset))
		die(RUNNER_NO_RESOURCE, "cannot set the GS base: %s", strerror(errno));
}

static const struct {
	const char *name;
	int at;
} names[] = {
	{ "rip", REG_RIP }, { "rsp", REG_RSP }, { "eflags", REG_EFL },
	{ "rax", REG_RAX }, { "rbx", REG_RBX }, { "rcx", REG_RCX },
	{ "rdx", REG_RDX }, { "rsi", REG_RSI }, { "rdi", REG_RDI },
	{ "rbp", REG_RBP }, { "r8", REG_R8 }, { "r9", REG_R9 },
	{ "r10", REG_R10 }, { "r11", REG_R11 }, { "r12", REG_R12 },
	{ "r13", REG_R13 }, { "r14", REG_R14 }, { "r15", REG_R15 },
};

static const greg_t *values(const void *context)
{
	return ((const ucontext_t *)context)->uc_mcontext.gregs;
}

size_t arch_registers(const void *context, struct arch_register *to)
{
	size_t nr = sizeof(names) / sizeof(names[0]);

	for (size_t i = 0; i < nr; i++)
		to[i] = (struct arch_register){
			names[i].name, (unsigned long)values(context)[names[i].at],
		};
	return nr;
}

unsigned long *arch_pc(void *context)
{
	return (unsigned long *)&((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

unsigned long arch_stack(const void *context)
{
	return (unsigned long)values(context)[REG_RSP];
}

#define CALL_OPCODE 0xe8

bool arch_is_behind_call(unsigned long word)
{
	return *(const unsigned char *)(word - ARCH_CALL_BYTES) == CALL_OPCODE;
}

bool arch_is_no_pointer(int code)
{
	return code == SI_KERNEL;
}

#define CLI 0xfa
#define STI 0xfb
#define ADDRESS_BITS 47	/* user addresses; others are not canonical or the kernel's */

/*
 * A privileged instruction raises a fault without an address. It was fetched, so
 * it can be read. A faulting fetch has an address.
 */
bool arch_skip_interrupt_flag(void *context, int code)
{
	unsigned long *pc = arch_pc(context);

	/* Some CPUs fault only at the target of a wild jump, which cannot be read. */
	if (code != SI_KERNEL || *pc >> ADDRESS_BITS)
		return false;
	if (*(const unsigned char *)*pc != CLI && *(const unsigned char *)*pc != STI)
		return false;
	++*pc;
	return true;
}

/* ud1 (%edx),%rdi: a WARN() with a message traps by it, with its bug entry in %rdi. */
static const unsigned char warn_trap[] = { 0x67, 0x48, 0x0f, 0xb9, 0x3a };
#define UD2_BYTES 2

static bool is_warn_trap(const void *context)
{
	return !memcmp((const void *)values(context)[REG_RIP], warn_trap, sizeof(warn_trap));
}

bool arch_is_bug(const void *context, const char *entry)
{
	if (is_warn_trap(context))
		return (greg_t)entry == values(context)[REG_RDI];
	return (greg_t)(entry + *(const int32_t *)entry) == values(context)[REG_RIP];
}

void arch_skip_bug(void *context)
{
	*arch_pc(context) += is_warn_trap(context) ? sizeof(warn_trap) : UD2_BYTES;
}
