// SPDX-License-Identifier: GPL-2.0-only
/*
 * memmove() of hosted kernels on x86-64. An experiment uses it if its file `objects`
 * lists ream/memmove.o. arch/x86/lib/memmove_64.S has an alternative that jumps
 * within itself, which native/host/arch/x86_64/alternatives.c cannot apply.
 */
#include <linux/string.h>
#include "kernel.h"

#undef memmove
void *memmove(void *to, const void *from, size_t bytes)
{
	void *at = to;

	HOST_STUB("custom");
	if (to <= from) {
		asm volatile("rep movsb"
			     : "+D" (at), "+S" (from), "+c" (bytes)
			     : : "memory");
		return to;
	}
	at += bytes - 1;
	from += bytes - 1;
	asm volatile("std; rep movsb; cld"
		     : "+D" (at), "+S" (from), "+c" (bytes)
		     : : "memory");
	return to;
}
