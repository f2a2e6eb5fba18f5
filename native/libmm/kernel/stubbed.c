// SPDX-License-Identifier: GPL-2.0-only
/*
 * The functions of stubbed.def. They are defined in assembly, without a type:
 * they read none of their arguments, so their prototypes do not matter.
 */
#include <linux/linkage.h>
#include "hosted.h"

/* Count the call in a per-CPU counter, and return a constant. */
#define RETURNS(name_, value_)						\
	static __PCPU_ATTRS("") __used unsigned long nr_calls_##name_;	\
	static struct host_stub stub_##name_ = {			\
		.name = #name_, .honesty = "stubbed",			\
		.nr_calls = (unsigned long __force *)&nr_calls_##name_,	\
	};								\
	static struct host_stub *const entry_##name_ __used		\
		__section("ream_stubs") = &stub_##name_;		\
	asm(".pushsection .text\n"					\
	    ".globl " #name_ "\n"					\
	    ".type " #name_ ", @function\n"				\
	    #name_ ":\n"						\
	    "	incq %gs:nr_calls_" #name_ "(%rip)\n"			\
	    "	mov $" #value_ ", %rax\n"				\
	    "	ret\n"							\
	    "	int3\n"							\
	    ".size " #name_ ", . - " #name_ "\n"			\
	    ".popsection");

#include "stubbed.def"
