/* SPDX-License-Identifier: GPL-2.0-only */
/* What a kernel's headers and a plain program both understand. */
#ifndef REAM_ARCH_H
#define REAM_ARCH_H

/**
 * struct ream_op - one function of a kernel's headers on page table entries
 * @name: As the program's input calls it.
 * @apply: Takes an entry (or a protection) and a number (or a PFN).
 */
struct ream_op {
	const char *name;
	unsigned long long (*apply)(unsigned long long entry,
				    unsigned long long nr);
};

extern const struct ream_op ream_ops[];
extern const unsigned int ream_nr_ops;

#ifdef __sparc__
/* Code is compiled for sun4u, and says what to put in its place on sun4v. */
struct sun4v_patch {
	unsigned int address;
	unsigned int instructions[2];
};

extern const struct sun4v_patch __sun4v_2insn_patch[];
extern const struct sun4v_patch __sun4v_2insn_patch_end[];
#endif

/**
 * ream_boot() - give the headers what a kernel finds out when it boots
 * @feature: Whether the processor has the feature that its entries depend on.
 *
 * Kernel side, after the program has done its part.
 */
void ream_boot(int feature);

#endif
