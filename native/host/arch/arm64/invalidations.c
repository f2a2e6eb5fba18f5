// SPDX-License-Identifier: GPL-2.0-only
/*
 * Record TLB invalidations (tlbi), which a program may not execute, for
 * experiments that check which pages are flushed. Each becomes a branch to a
 * veneer, which calls a function that preserves all registers. So the length and
 * the instruction count of the kernels' code do not change.
 *
 * Source: Arm Architecture Reference Manual, DDI 0487, C5.5, TLBI.
 */
#include "program.h"
#include "privileged.h"
#include "tlb_flushes.h"

#define MOST_SITES 8192

static struct site {
	uint32_t *at;
	uint32_t insn;
} sites[MOST_SITES];
static unsigned int nr_sites;

/* Where invalidations are recorded. The assembly code below reads it. */
struct tlb_flushes *noted_invalidations __attribute__((used));

/* The operand of tlbi is in x16. The veneer has saved x16 and x30. */
asm(".pushsection .text\n"
	".balign 4\n"
	"note_page:\n"
	"	stp	x0, x1, [sp, #16]\n"
	"	lsl	x0, x16, #20\n"	/* of the operand, bits 43 to 0 are */
	"	lsr	x0, x0, #8\n"		/* those of an address from 55 to 12 */
	"	add	x1, x0, #4096\n"
	"	b	1f\n"
	"note_all:\n"
	"	stp	x0, x1, [sp, #16]\n"
	"	mov	x0, #0\n"
	"	mov	x1, #-1\n"
	"1:	stp	x2, x3, [sp, #32]\n"
	"	mrs	x3, nzcv\n"
	"	adrp	x16, noted_invalidations\n"
	"	ldr	x16, [x16, :lo12:noted_invalidations]\n"
	"	ldr	x2, [x16]\n"		/* nr */
	"	add	x2, x2, #1\n"
	"	str	x2, [x16]\n"
	"	ldr	x2, [x16, #8]\n"	/* start */
	"	cmp	x2, x0\n"
	"	csel	x2, x2, x0, lo\n"
	"	str	x2, [x16, #8]\n"
	"	ldr	x2, [x16, #16]\n"	/* end */
	"	cmp	x2, x1\n"
	"	csel	x2, x2, x1, hi\n"
	"	str	x2, [x16, #16]\n"
	"	msr	nzcv, x3\n"
	"	ldp	x2, x3, [sp, #32]\n"
	"	ldp	x0, x1, [sp, #16]\n"
	"	ret\n"
	".popsection\n");

_Static_assert(offsetof(struct tlb_flushes, nr) == 0 &&
	       offsetof(struct tlb_flushes, start) == 8 &&
	       offsetof(struct tlb_flushes, end) == 16, "as the functions above have it");

/* op2 is that of a single page: VAE1, VAAE1, VALE1, VAALE1. Others flush many pages. */
static bool is_of_page(uint32_t insn)
{
	return insn >> 5 & 1;
}

/* CRm is that of a range, which needs a feature that hosted kernels do not have. */
static bool is_of_range(uint32_t insn)
{
	unsigned int crm = insn >> 8 & 15;

	return crm == 2 || crm == 5 || crm == 6;
}

void invalidations_are_at(uint32_t *site, uint32_t insn)
{
	if (is_of_range(insn))
		return;
	if (nr_sites == MOST_SITES)
		die(RUNNER_CRASHED, "more than %u invalidations of translations", MOST_SITES);
	sites[nr_sites++] = (struct site){ site, insn };
}

static uint32_t call(const uint32_t *from, const uint32_t *to)
{
	return veneer_branch(from, to) | 1U << 31;	/* bl */
}

static void note(struct site *site)
{
	uint32_t *code = veneer_new(), reg = site->insn & 31;

	code[0] = 0xa9bd7bf0;			/* stp x16, x30, [sp, #-48]! */
	code[1] = 0xaa0003f0 | reg << 16;	/* mov x16, xT */
	code[2] = call(&code[2], is_of_page(site->insn) ? note_page : note_all);
	code[3] = 0xa8c37bf0;			/* ldp x16, x30, [sp], #48 */
	code[4] = veneer_branch(&code[4], site->at + 1);
	*site->at = veneer_branch(site->at, code);
}

FROM_KERNEL void host_note_invalidations(struct tlb_flushes *to)
{
	noted_invalidations = to;
	if (!nr_sites)
		return;
	privileged_open();
	while (nr_sites)
		note(&sites[--nr_sites]);
	privileged_close();
}
