/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The smallest guest: a boot sector that does what a kernel does first, says
 * "ream" on the serial port and ends QEMU through isa-debug-exit. If it gets
 * that far under KVM, KVM works. That /dev/kvm opens proves nothing, nor does
 * a guest in real mode or a small copy: some hosts lose a guest for good when a
 * kernel first moves itself. The BIOS leaves A20 on. Needs 256 MiB of memory.
 */
#define LOADED_AT	0x7c00
#define AT(label)	(LOADED_AT + (label) - _start)

#define SERIAL_PORT	0x3f8
#define EXIT_PORT	0xf4	/* iobase= on QEMU's command line */
#define EXIT_VALUE	0x10	/* QEMU's exit status is 2 * this + 1 */

/* Three levels that map the first 512 MiB to themselves. */
#define PML4		0x1000
#define PDPT		0x2000
#define PD		0x3000
#define NR_LARGE	256
#define LARGE_BYTES	0x200000
#define PRESENT_WRITE	0x3
#define LARGE_PAGE	0x80

#define CR4_PAE		0x20
#define CR0_KERNEL	0x80050023	/* PG AM WP NE MP PE */
#define MSR_EFER	0xc0000080
#define EFER_LME	0x100

#define CODE64		0x8
#define DATA64		0x10

#define COPY_FROM	0x100000
#define COPY_TO		0x8000000
#define COPY_BYTES	0x4000000

	.macro	say letter
	movb	$\letter, %al
	outb	%al, %dx
	.endm

	.code16
	.text
	.globl	_start
_start:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	movw	%ax, %es

	cld
	xorl	%eax, %eax
	movl	$PML4, %edi
	movl	$((PD - PML4 + 0x1000) / 4), %ecx
	addr32 rep stosl
	movl	$(PDPT + PRESENT_WRITE), PML4
	movl	$(PD + PRESENT_WRITE), PDPT
	movl	$(PRESENT_WRITE + LARGE_PAGE), %eax
	movl	$PD, %edi
	movl	$NR_LARGE, %ecx
1:	movl	%eax, (%edi)
	addl	$LARGE_BYTES, %eax
	addl	$8, %edi
	decl	%ecx
	jnz	1b

	movl	$PML4, %eax
	movl	%eax, %cr3
	movl	%cr4, %eax
	orl	$CR4_PAE, %eax
	movl	%eax, %cr4
	movl	$MSR_EFER, %ecx
	rdmsr
	orl	$EFER_LME, %eax
	wrmsr
	lgdtl	AT(gdt_pointer)
	movl	%cr0, %eax
	orl	$CR0_KERNEL, %eax
	movl	%eax, %cr0
	ljmpl	$CODE64, $AT(long_mode)

	.code64
long_mode:
	movw	$DATA64, %ax
	movw	%ax, %ds
	movw	%ax, %es

	/* Backwards, as a compressed kernel moves itself out of its own way. */
	movl	$(COPY_FROM + COPY_BYTES - 8), %esi
	movl	$(COPY_TO + COPY_BYTES - 8), %edi
	movl	$(COPY_BYTES / 8), %ecx
	std
	rep movsq
	cld

	movw	$SERIAL_PORT, %dx
	say	'r'
	say	'e'
	say	'a'
	say	'm'
	say	'\n'
	movb	$EXIT_VALUE, %al
	outb	%al, $EXIT_PORT
1:	hlt
	jmp	1b

	.balign	8
gdt:
	.quad	0
	.quad	0x00af9a000000ffff	/* CODE64 */
	.quad	0x00cf92000000ffff	/* DATA64 */
gdt_end:
gdt_pointer:
	.word	gdt_end - gdt - 1
	.long	AT(gdt)

	/* What makes the first sector of a disk a boot sector. */
	.org	_start + 510
	.word	0xaa55
