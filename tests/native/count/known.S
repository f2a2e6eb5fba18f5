/* SPDX-License-Identifier: GPL-2.0-only */
/* A program whose instructions are known: between two marks it calls known() once. */
#include "marks.h"

#define MEASURED (1 << 44)	/* where lines and pages are counted */

	.globl _start
	.text
_start:
	movabs	$MEASURED, %rdi		/* mmap(), private, anonymous and fixed */
	mov	$8192, %esi
	mov	$3, %edx
	mov	$0x32, %r10d
	mov	$-1, %r8
	xor	%r9d, %r9d
	mov	$9, %eax
	syscall
	mov	%rax, %rbx
	call	known			/* a warm-up: its beginning is not marked */
	nopl	MARK_END(%rax)
	nopl	MARK_BEGIN(%rax)
	call	known
	nopl	MARK_END(%rax)
	mov	$60, %eax
	xor	%edi, %edi
	syscall

	.type	known, @function
known:
	mov	$10, %ecx
.Lloop:					/* 10 times, of which 9 jump back */
	movl	(%rbx), %eax		/* a load of 4 */
	movq	%rax, 64(%rbx)		/* a store of 8 */
	addb	$1, 128(%rbx)		/* a load and a store of 1 */
	dec	%ecx
	jnz	.Lloop
	lock addl $1, 192(%rbx)		/* locked: a load and a store of 4 */
	xchgq	%rax, 256(%rbx)		/* locked without a prefix, of 8 */
	xchgq	%rax, %rdx		/* not locked */
	lock cmpxchgw %dx, 320(%rbx)	/* locked, of 2 */
	movnti	%rax, 384(%rbx)		/* a streaming store of 8 */
	sfence
	mfence
	lfence
	prefetcht0 448(%rbx)
	lea	512(%rbx), %rdi
	mov	$32, %ecx
	xor	%eax, %eax
	rep stosq			/* 32 words: four lines that are only written */
	cmp	%eax, %eax
	jne	.Lloop			/* not taken */
	jmp	.Lend
	nop
.Lend:
	ret
	.size	known, . - known
