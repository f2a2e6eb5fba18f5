/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where QEMU's machine "virt" enters: at EL1, on one CPU, without translation.
 * Tables are made, translation and floating point are turned on, and home.c
 * goes on. Every exception ends the run.
 */
	.section .text.start, "ax"
	.globl	_start
_start:
	adrp	x0, stack_top
	mov	sp, x0
	adrp	x0, vectors
	add	x0, x0, :lo12:vectors
	msr	vbar_el1, x0
	bl	home_make_tables
	adrp	x0, home_low_table
	msr	ttbr0_el1, x0
	adrp	x0, home_high_table
	msr	ttbr1_el1, x0
	/* Attribute 0: normal memory, written back. */
	mov	x0, #0xff
	msr	mair_el1, x0
	/* 48 bits of address in both halves, pages of 4 KiB. */
	ldr	x0, =0x5b5103510
	msr	tcr_el1, x0
	mov	x0, #(3 << 20)
	msr	cpacr_el1, x0
	msr	tpidr_el1, xzr
	isb
	mrs	x0, sctlr_el1
	/* The MMU, caches of data, caches of instructions. */
	orr	x0, x0, #(1 << 0)
	orr	x0, x0, #(1 << 2)
	orr	x0, x0, #(1 << 12)
	msr	sctlr_el1, x0
	isb
	bl	home_main

	.globl	semihost
semihost:
	hlt	#0xf000
	ret

	.balign	2048
vectors:
	.rept	16
	.balign	128
	mrs	x0, esr_el1
	mrs	x1, elr_el1
	mrs	x2, far_el1
	b	home_fault
	.endr

	.bss
	.balign	4096
	.space	65536
stack_top:
