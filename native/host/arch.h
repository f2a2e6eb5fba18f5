/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the program around the kernels needs of an architecture: one folder of
 * native/host/arch/ has all of it.
 */
#ifndef REAM_ARCH_H
#define REAM_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arch_inline.h"
#include "host.h"

/* What kernels learn of the CPU that we run on: its features. */
void arch_describe_cpu(struct host_machine *machine);

/* Before any kernel's code runs: make it code that a program may execute. */
void arch_host_kernels(void);

/*
 * Apply the alternatives of all kernels; @capability: features, as bits of the
 * kernel's numbers.
 */
unsigned int alternatives_apply(const unsigned int *capability);

/* The calling thread is a CPU whose per-CPU area is this far from CPU 0's. */
void arch_enter_cpu(unsigned long per_cpu_offset);

/* Of a signal's context: where the thread was, and the top of its stack. */
unsigned long *arch_pc(void *context);
unsigned long arch_stack(const void *context);

/**
 * struct arch_register - a register of a signal's context
 * @name: As people know it.
 * @value: What it held.
 */
struct arch_register {
	const char *name;
	unsigned long value;
};

#define ARCH_MOST_REGISTERS 40

/* Fill @to; how many there are. */
size_t arch_registers(const void *context, struct arch_register *to);

/* Whether @word, which lies behind code, is where a call returns to. */
bool arch_is_behind_call(unsigned long word);

/* Whether the pointer that was used cannot be one: the machine tells no address. */
bool arch_is_no_pointer(int code);

/* An instruction of the interrupt flag: whether it was one, which is skipped. */
bool arch_skip_interrupt_flag(void *context, int code);

/* Whether a trap is that of an entry of a table of bugs; and go on behind it. */
bool arch_is_bug(const void *context, const char *entry);
void arch_skip_bug(void *context);

#endif
