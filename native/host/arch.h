/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each architecture provides to the program around the kernels. Each has
 * one folder in native/host/arch/.
 */
#ifndef REAM_ARCH_H
#define REAM_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arch_inline.h"
#include "host.h"

/* Describe the features of the CPU to the kernels. */
void arch_describe_cpu(struct host_machine *machine);

/* Patch the kernels' code so that a program may execute it. Call it before any runs. */
void arch_host_kernels(void);

/*
 * Apply the alternatives of all kernels. @capability is a bitmap of features, by
 * the kernel's numbers. Return: how many were applied.
 */
unsigned int alternatives_apply(const unsigned int *capability);

/* Make the calling thread a CPU with this offset of its per-CPU area. */
void arch_enter_cpu(unsigned long per_cpu_offset);

/* The program counter and the stack pointer in the context of a signal. */
unsigned long *arch_pc(void *context);
unsigned long arch_stack(const void *context);

/**
 * struct arch_register - a register in the context of a signal
 * @name: Its usual name.
 * @value: Its value.
 */
struct arch_register {
	const char *name;
	unsigned long value;
};

#define ARCH_MOST_REGISTERS 40

/* Fill @to with the registers. Return: their number. */
size_t arch_registers(const void *context, struct arch_register *to);

/* Whether the instruction before the address @word is a call. */
bool arch_is_behind_call(unsigned long word);

/* Whether the faulting pointer was not canonical, so that there is no fault address. */
bool arch_is_no_pointer(int code);

/* Skip an instruction that changes the interrupt flag. Return: whether it was one. */
bool arch_skip_interrupt_flag(void *context, int code);

/* Whether a trap belongs to an entry of the bug table; and skip its instruction. */
bool arch_is_bug(const void *context, const char *entry);
void arch_skip_bug(void *context);

#endif
