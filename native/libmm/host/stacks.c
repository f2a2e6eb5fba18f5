// SPDX-License-Identifier: GPL-2.0-only
/* Stacks of tasks. All tasks share one thread; a task runs until it calls schedule(). */
#include <sys/mman.h>
#include "computer.h"

/*
 * Save the callee-saved registers and continue on another stack. A new stack
 * holds the same six registers. Two of them are the function and its argument.
 */
asm(".text\n"
	".globl host_switch\n"
	"host_switch:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	"stack_begins:\n"
	"	mov %r12, %rdi\n"
	"	call *%rbx\n"
	"	ud2\n");

#define GUARD_BYTES 4096UL

static unsigned long nr_stacks;
static void **free_stacks;	/* linked list: each one's last word points to the next's */

/* The lowest page of each stack stays unmapped, so that endless recursion faults. */
static void **map_stack(void)
{
	unsigned long start = LIBMM_STACKS_ADDRESS + nr_stacks * LIBMM_STACK_BYTES;

	if (nr_stacks++ == LIBMM_MOST_STACKS)
		die(RUNNER_NO_RESOURCE, "more than %lu tasks at once", LIBMM_MOST_STACKS);
	memory_map(start + GUARD_BYTES, LIBMM_STACK_BYTES - GUARD_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return (void **)(start + LIBMM_STACK_BYTES) - 1;
}

FROM_KERNEL void *host_new_stack(void (*run)(void *arg), void *arg)
{
	void **top = free_stacks;

	if (top)
		free_stacks = *top;
	else
		top = map_stack();
	top[-1] = NULL;			/* where stack_begins would return to */
	top[-2] = (void *)stack_begins;
	top[-3] = NULL;			/* rbp */
	top[-4] = (void *)run;		/* rbx */
	top[-5] = arg;			/* r12 */
	top[-6] = NULL;
	top[-7] = NULL;
	top[-8] = NULL;
	return top - 8;
}

FROM_KERNEL void host_free_stack(void *stack_pointer)
{
	unsigned long end = ((unsigned long)stack_pointer | (LIBMM_STACK_BYTES - 1)) + 1;
	void **top = (void **)end - 1;

	*top = free_stacks;
	free_stacks = top;
}
