/* SPDX-License-Identifier: GPL-2.0-only */
/* What signal handlers of the program call in the kernel. */
#ifndef REAM_TRAPS_H
#define REAM_TRAPS_H

#include <asm/extable.h>
#include <linux/init.h>

/* Linker symbols: the kernel's exception table. */
extern const struct exception_table_entry __start___ex_table[], __stop___ex_table[];

/* Linker symbols: the initcalls, and the places of USER_PTR_MAX in code. */
extern initcall_entry_t __initcall_start[], __initcall_end[];
extern s32 __start_runtime_ptr_USER_PTR_MAX[], __stop_runtime_ptr_USER_PTR_MAX[];

int resolve_fault(unsigned long address);
unsigned long find_fixup(unsigned long ip);

#endif
