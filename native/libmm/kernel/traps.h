/* SPDX-License-Identifier: GPL-2.0-only */
/* What a signal handler of the program asks the kernel. */
#ifndef REAM_TRAPS_H
#define REAM_TRAPS_H

#include <asm/extable.h>
#include <linux/init.h>

/* Of the linker: where the kernel goes on after a fault that it expects. */
extern const struct exception_table_entry __start___ex_table[], __stop___ex_table[];

/* Of the linker: what initcalls are, and where USER_PTR_MAX stands in code. */
extern initcall_entry_t __initcall_start[], __initcall_end[];
extern s32 __start_runtime_ptr_USER_PTR_MAX[], __stop_runtime_ptr_USER_PTR_MAX[];

int resolve_fault(unsigned long address);
unsigned long find_fixup(unsigned long ip);

#endif
