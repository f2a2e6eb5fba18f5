// SPDX-License-Identifier: GPL-2.0-only
/*
 * Variables from other parts of the kernel, each with the value needed here.
 * A missing variable does not read as zero: an access ends the run with its name.
 */
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/jump_label.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/ramfs.h>
#include <linux/sysctl.h>
#include <linux/uidgid.h>
#include <linux/pgtable.h>
#include <asm/mmu_context.h>
#include <asm/tlbflush.h>
#include "hosted.h"
#include "trees.h"

/* --- symbols of the kernel's linker script ----------------------------- */

char _stext[1], _etext[1], _sinittext[1], _einittext[1], _text[1], _end[1];
char __bss_start[1], __bss_stop[1], __init_begin[1], __init_end[1];
char __start_rodata[1], __end_rodata[1], __start_ro_after_init[1], __end_ro_after_init[1];
char __lock_text_start[1], __lock_text_end[1];
char __start___modver[1], __stop___modver[1];

/* --- the architecture: arch/x86/kernel/head_64.S, arch/x86/mm/init.c --- */

#ifndef HAVE_ZERO_PAGE_OF_MM
unsigned long empty_zero_page[PAGE_SIZE / sizeof(unsigned long)] __aligned(PAGE_SIZE);
#endif
pgd_t init_top_pgt[PTRS_PER_PGD] __aligned(PAGE_SIZE);
unsigned long init_stack[THREAD_SIZE / sizeof(unsigned long)] __aligned(PAGE_SIZE);
atomic64_t last_mm_ctx_id = ATOMIC64_INIT(1);
DEFINE_STATIC_KEY_FALSE(arch_scale_freq_key);

/* --- parts of fs/ that are not linked ---------------------------------- */

int suid_dumpable;
struct super_block *blockdev_superblock;
const struct file_operations def_blk_fops, def_chr_fops, pipefifo_fops, fscontext_fops;
const struct dentry_operations ns_dentry_operations;

static int begin_rootfs(struct fs_context *context)
{
	return ramfs_init_fs_context(context);
}

/* init/do_mounts.c */
struct file_system_type rootfs_fs_type = {
	.name = "rootfs",
	.init_fs_context = begin_rootfs,
	.kill_sb = kill_litter_super,
};

/* --- the scheduler: kernel/sched/core.c ------------------------------- */

#ifdef RQ_nr_pinned
/* migrate_disable() counts in struct rq, which is private to the scheduler. */
asm(".pushsection .data..percpu, \"aw\", @progbits\n"
	".balign 64\n"
	".globl runqueues\n"
	"runqueues:\n"
	"	.zero " __stringify(RQ_nr_pinned) " + 64\n"
	".popsection");
#endif

/* --- others ------------------------------------------------------------ */

bool static_key_initialized;
int overflowuid = DEFAULT_OVERFLOWUID, overflowgid = DEFAULT_OVERFLOWGID;
struct kobject *kernel_kobj;
struct static_key perf_swevent_enabled[PERF_COUNT_SW_MAX];
