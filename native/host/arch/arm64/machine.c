// SPDX-License-Identifier: GPL-2.0-only
/* arm64: description of the CPU, and access to the context of a signal. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include "program.h"

/* Pass on the hwcaps of the auxiliary vector. The kernel's side knows their bits. */
void arch_describe_cpu(struct host_machine *machine)
{
	machine->capability[0] = (unsigned int)getauxval(AT_HWCAP);
	machine->capability[1] = (unsigned int)getauxval(AT_HWCAP2);
}

/* Nothing to do: the kernels write the offset to tpidr_el1 themselves (privileged.c). */
void arch_enter_cpu(unsigned long per_cpu_offset)
{
	(void)per_cpu_offset;
}

#define NR_GENERAL 31

size_t arch_registers(const void *context, struct arch_register *to)
{
	static const char names[NR_GENERAL][4] = {
		"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10",
		"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20",
		"x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30",
	};
	const mcontext_t *values = &((const ucontext_t *)context)->uc_mcontext;
	size_t nr = 0;

	to[nr++] = (struct arch_register){ "pc", values->pc };
	to[nr++] = (struct arch_register){ "sp", values->sp };
	to[nr++] = (struct arch_register){ "pstate", values->pstate };
	for (size_t i = 0; i < NR_GENERAL; i++)
		to[nr++] = (struct arch_register){ names[i], values->regs[i] };
	return nr;
}

unsigned long *arch_pc(void *context)
{
	return (unsigned long *)&((ucontext_t *)context)->uc_mcontext.pc;
}

unsigned long arch_stack(const void *context)
{
	return ((const ucontext_t *)context)->uc_mcontext.sp;
}

bool arch_is_behind_call(unsigned long word)
{
	uint32_t insn = *(const uint32_t *)(word - ARCH_CALL_BYTES);

	return word % 4 == 0 && ((insn & 0xfc000000) == 0x94000000 ||	/* bl */
				 (insn & 0xfffffc1f) == 0xd63f0000);	/* blr */
}

bool arch_is_no_pointer(int code)
{
	(void)code;
	return false;
}

/* Never needed: privileged.c has replaced these instructions by hints. */
bool arch_skip_interrupt_flag(void *context, int code)
{
	(void)context;
	(void)code;
	return false;
}

/* WARN() and BUG() are brk #0x800. A bug entry begins with its relative address. */
bool arch_is_bug(const void *context, const char *entry)
{
	const mcontext_t *values = &((const ucontext_t *)context)->uc_mcontext;

	return (unsigned long)(entry + *(const int32_t *)entry) == values->pc;
}

void arch_skip_bug(void *context)
{
	*arch_pc(context) += ARCH_CALL_BYTES;
}
