// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replace each instruction that EL0 may not execute by one with the same effect
 * here. The length and the instruction count of the kernels' code do not change.
 *
 * sp_el0 (current) and tpidr_el1 (the per-CPU offset) become thread-local words.
 * Instructions that read or write them become branches to veneers outside of the
 * kernels' text. Interrupt masking and TLB maintenance become hints that do
 * nothing, unless an experiment records the latter (invalidations.c). All other
 * privileged instructions stay, and end the run if they are executed.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "program.h"
#include "privileged.h"

/*
 * Every kernel has a `current` of its own, because the layout of task_struct
 * differs between kernels. The per-CPU offset is the same for all.
 */
static __thread struct {
	unsigned long tpidr_el1;
	unsigned long sp_el0[HOST_MOST_KERNELS];
} registers;

#define NOP 0xd503201fU
/* Unallocated hints do nothing, and the counting plugin can tell them from nops. */
#define HINT(n) (NOP | (n) << 5)
#define WAS_TLBI HINT(0x60U)
#define WAS_DAIF HINT(0x61U)

#define READ 0xd5300000U	/* mrs x0, ...; msr lacks the bit 0x00200000 */
#define SP_EL0 0x00084100U
#define TPIDR_EL1 0x0008d080U
#define TPIDR_EL2 0x000cd040U
#define DAIF 0x000b4220U

#define MOST_VENEERS 16384

static uint32_t veneers[MOST_VENEERS][VENEER_INSNS]
	__attribute__((section("ream_veneers,\"ax\",@progbits//"), aligned(4096)));
static unsigned int nr_veneers;

uint32_t veneer_branch(const uint32_t *from, const uint32_t *to)
{
	return 0x14000000U | ((uint32_t)(to - from) & 0x3ffffffU);
}

/* The offset field of a load or store of @word relative to tpidr_el0. */
static uint32_t offset_of(const unsigned long *word)
{
	unsigned long thread, offset;

	asm("mrs %0, tpidr_el0" : "=r" (thread));
	offset = (unsigned long)word - thread;
	if (offset % 8 || offset / 8 > 4095)
		die(RUNNER_CRASHED, "thread-local word at %lu: out of reach", offset);
	return (uint32_t)(offset / 8) << 10;
}

uint32_t *veneer_new(void)
{
	if (nr_veneers == MOST_VENEERS)
		die(RUNNER_CRASHED, "more than %u veneers", MOST_VENEERS);
	return veneers[nr_veneers++];
}

static uint32_t read_veneer(const uint32_t *site, unsigned int reg, const unsigned long *word)
{
	uint32_t *code = veneer_new();

	code[0] = 0xd53bd040U | reg;				/* mrs xT, tpidr_el0 */
	code[1] = 0xf9400000U | offset_of(word) | reg << 5 | reg;	/* ldr xT, [xT, #] */
	code[2] = veneer_branch(&code[2], site + 1);
	return veneer_branch(site, code);
}

static uint32_t write_veneer(const uint32_t *site, unsigned int reg, const unsigned long *word)
{
	unsigned int other = reg == 16 ? 17 : 16;
	uint32_t *code = veneer_new();

	code[0] = 0xf81f0fe0U | other;				/* str xO, [sp, #-16]! */
	code[1] = 0xd53bd040U | other;				/* mrs xO, tpidr_el0 */
	code[2] = 0xf9000000U | offset_of(word) | other << 5 | reg;	/* str xT, [xO, #] */
	code[3] = 0xf84107e0U | other;				/* ldr xO, [sp], #16 */
	code[4] = veneer_branch(&code[4], site + 1);
	return veneer_branch(site, code);
}

static uint32_t hosted(uint32_t *site, unsigned int kernel)
{
	uint32_t insn = *site, reg = insn & 31;

	switch (insn & ~31U) {
	case READ | SP_EL0:
		return read_veneer(site, reg, &registers.sp_el0[kernel]);
	case (READ | SP_EL0) & ~0x00200000U:
		return write_veneer(site, reg, &registers.sp_el0[kernel]);
	case READ | TPIDR_EL1:
	case READ | TPIDR_EL2:
		return read_veneer(site, reg, &registers.tpidr_el1);
	case (READ | TPIDR_EL1) & ~0x00200000U:
	case (READ | TPIDR_EL2) & ~0x00200000U:
		return write_veneer(site, reg, &registers.tpidr_el1);
	case READ | DAIF:	/* all unmasked */
		return 0xd2800000U | reg;	/* mov xT, #0 */
	case (READ | DAIF) & ~0x00200000U:
		return WAS_DAIF;
	}
	if ((insn & 0xfffff0df) == 0xd50340df)	/* msr daifset or daifclr, # */
		return WAS_DAIF;
	if ((insn & 0xfff8f000) == 0xd5088000) {	/* tlbi */
		invalidations_are_at(site, insn);
		return WAS_TLBI;
	}
	return insn;
}

static void protect(const void *from, const void *to, int protection)
{
	uintptr_t start = (uintptr_t)from & ~4095UL;

	if (mprotect((void *)start, (uintptr_t)to - start, protection))
		die(RUNNER_NO_RESOURCE, "cannot change kernel text: %s", strerror(errno));
}

static void host_kernel_text(const struct host_kernel *kernel, unsigned int number)
{
	uint32_t *site = (uint32_t *)kernel->text, *end = (uint32_t *)kernel->text_end;

	for (; site < end; site++) {
		uint32_t insn = hosted(site, number);

		if (insn != *site)
			*site = insn;
	}
}

void privileged_open(void)
{
	protect(__start_ream_text, __stop_ream_text, PROT_READ | PROT_WRITE | PROT_EXEC);
	protect(veneers, veneers + MOST_VENEERS, PROT_READ | PROT_WRITE | PROT_EXEC);
}

void privileged_close(void)
{
	protect(veneers, veneers + MOST_VENEERS, PROT_READ | PROT_EXEC);
	protect(__start_ream_text, __stop_ream_text, PROT_READ | PROT_EXEC);
	arch_sync_code(__start_ream_text, __stop_ream_text);
	arch_sync_code(veneers, veneers + MOST_VENEERS);
}

void arch_host_kernels(void)
{
	unsigned int number = 0;

	privileged_open();
	for (struct host_kernel *const *kernel = __start_ream_kernels;
	     kernel < __stop_ream_kernels; kernel++) {
		if (number == HOST_MOST_KERNELS)
			die(RUNNER_USAGE, "more than %u kernels", HOST_MOST_KERNELS);
		host_kernel_text(*kernel, number++);
	}
	privileged_close();
}
