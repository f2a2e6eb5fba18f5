/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions that call each other, themselves, and jump; and code that is not counted between. */
#include "marks.h"

	.globl _start
	.text
_start:
	nopl	MARK_BEGIN(%rax)
	call	top
	nopl	MARK_END(%rax)
	mov	$60, %eax
	xor	%edi, %edi
	syscall

uncounted:				/* calls back */
	call	leaf
	nop
	ret

	.macro	function name
	.type	\name, @function
\name:
	.endm
	.macro	ends name
	.size	\name, . - \name
	.endm

	function top			/* 6, and all others */
	call	middle
	call	uncounted		/* a leaf */
	nop
	nop
	nop
	ret
	ends	top

	function middle			/* 5 */
	mov	$2, %ecx
	call	leaves
	call	twice
	call	jumps
	ret
	ends	middle

	function twice			/* 5, 5 and 3: it calls itself two times */
	test	%ecx, %ecx
	jz	.Ldone
	dec	%ecx
	call	twice
.Ldone:
	ret
	ends	twice

	function jumps			/* 2 */
	nop
	jmp	leaf
	ends	jumps

	function leaves			/* 1: what it jumps to returns to middle() */
	jmp	uncounted_end
	ends	leaves

uncounted_end:
	ret

	function leaf			/* 1, called twice */
	ret
	ends	leaf
