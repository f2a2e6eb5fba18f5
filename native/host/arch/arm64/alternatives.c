// SPDX-License-Identifier: GPL-2.0-only
/*
 * Alternatives: instructions that a booting kernel replaces by the best ones for
 * its CPU. Without them, atomic operations would be loops of loads and stores.
 * And patches that a kernel makes to its own code later.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "program.h"
#include "privileged.h"

/* The kernel's layout. Source: arch/arm64/include/asm/alternative.h */
struct alt_instr {
	int32_t instr_offset;
	int32_t repl_offset;
	uint16_t capability;
	uint8_t instr_bytes;
	uint8_t repl_bytes;
};

/* The replacement is a callback that generates the code. */
#define IS_CALLBACK 0x8000
#define MOST_INSNS 64

typedef void (*callback_fn)(struct alt_instr *, uint32_t *, uint32_t *, int);

static uint32_t *site_of(struct alt_instr *entry)
{
	return (uint32_t *)((char *)&entry->instr_offset + entry->instr_offset);
}

static void protect(void *from, void *to, int protection)
{
	uintptr_t start = (uintptr_t)from & ~4095UL;

	if (mprotect((void *)start, (uintptr_t)to - start, protection))
		die(RUNNER_NO_RESOURCE, "cannot change kernel text: %s", strerror(errno));
}

FROM_KERNEL void host_patch(void *at, const void *code, unsigned long bytes)
{
	protect(at, (char *)at + bytes, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(at, code, bytes);
	protect(at, (char *)at + bytes, PROT_READ | PROT_EXEC);
	arch_sync_code(at, (char *)at + bytes);
}

/* Whether an instruction other than a branch has a PC-relative operand. */
static bool is_relative(uint32_t insn)
{
	return (insn & 0x1f000000) == 0x10000000 ||	/* adr, adrp */
	       (insn & 0x3b000000) == 0x18000000;	/* ldr of a literal */
}

/* Distance from a branch to its target, in instructions. 0 if it is no branch. */
static long branch_distance(uint32_t insn)
{
	if ((insn & 0x7c000000) == 0x14000000)			/* b, bl */
		return (int32_t)(insn << 6) >> 6;
	if ((insn & 0xff000000) == 0x54000000 ||		/* b.cond */
	    (insn & 0x7e000000) == 0x34000000)			/* cbz, cbnz */
		return (int32_t)(insn << 8) >> 13;
	if ((insn & 0x7e000000) == 0x36000000)			/* tbz, tbnz */
		return (int32_t)(insn << 13) >> 18;
	return 0;
}

/*
 * As in the kernel, branches within the replacement are unchanged, and b or bl
 * out of it keep their target. Other PC-relative operands do not occur.
 */
static uint32_t moved(const uint32_t *from, const uint32_t *to, unsigned int at, unsigned int nr)
{
	uint32_t insn = from[at];
	long distance = branch_distance(insn), target = (long)at + distance;

	if (is_relative(insn))
		die(RUNNER_CRASHED, "alternative at %p: %#x is not handled", (void *)to, insn);
	if (!distance || (target >= 0 && target <= (long)nr))
		return insn;
	if ((insn & 0x7c000000) != 0x14000000)
		die(RUNNER_CRASHED, "alternative at %p: %#x leads out of it", (void *)to, insn);
	distance = from + at + distance - (to + at);
	return (insn & 0xfc000000) | ((uint32_t)distance & 0x3ffffff);
}

static void apply(struct alt_instr *entry)
{
	uint32_t *site = site_of(entry);
	uint32_t *repl = (uint32_t *)((char *)&entry->repl_offset + entry->repl_offset);
	unsigned int nr = entry->instr_bytes / sizeof(*site);
	uint32_t code[MOST_INSNS];

	if (nr > MOST_INSNS)
		die(RUNNER_CRASHED, "alternative at %p: %u instructions", (void *)site, nr);
	if (entry->capability & IS_CALLBACK) {
		((callback_fn)repl)(entry, site, code, (int)nr);
	} else {
		if (entry->repl_bytes != entry->instr_bytes)
			die(RUNNER_CRASHED, "alternative at %p: %u for %u bytes", (void *)site,
			    entry->repl_bytes, entry->instr_bytes);
		for (unsigned int i = 0; i < nr; i++)
			code[i] = moved(repl, site, i, nr);
	}
	memcpy(site, code, entry->instr_bytes);
}

unsigned int alternatives_apply(const unsigned int *capability)
{
	struct alt_instr *entry = (struct alt_instr *)__start_altinstructions;
	struct alt_instr *stop = (struct alt_instr *)__stop_altinstructions;
	unsigned int nr_replaced = 0;

	protect(__start_ream_text, __stop_ream_text, PROT_READ | PROT_WRITE | PROT_EXEC);
	for (; entry < stop; entry++) {
		unsigned int number = entry->capability & ~IS_CALLBACK;

		if (!(capability[number / 32] >> (number % 32) & 1))
			continue;
		apply(entry);
		nr_replaced++;
	}
	protect(__start_ream_text, __stop_ream_text, PROT_READ | PROT_EXEC);
	arch_sync_code(__start_ream_text, __stop_ream_text);
	return nr_replaced;
}
