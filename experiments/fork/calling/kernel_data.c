// SPDX-License-Identifier: GPL-2.0-only
/*
 * For a fork as a call: the kernel's variables that it reads, each with the
 * value it needs. See native/host/kernel/data.c.
 */
#include <linux/cpumask.h>
#include <linux/list.h>
#include <linux/pgtable.h>
#include <linux/spinlock.h>
#include <linux/user_namespace.h>
#include <asm/mmu_context.h>
#include "kernel.h"

/* All address spaces, for changes to the kernel's half; there are none. arch/x86/mm/fault.c */
DEFINE_SPINLOCK(pgd_lock);
LIST_HEAD(pgd_list);

/* The kernel's half of all of them: nothing is mapped there. arch/x86/kernel/head_64.S */
pgd_t init_top_pgt[PTRS_PER_PGD] __aligned(PAGE_SIZE);

/* Names address spaces. arch/x86/mm/tlb.c */
atomic64_t last_mm_ctx_id = ATOMIC64_INIT(1);

/* The only one. kernel/user.c */
struct user_namespace init_user_ns;

/* No CPU goes. kernel/cpu.c */
struct cpumask __cpu_dying_mask;
