// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the compact experiment: functions that do nothing, and where that is
 * right.
 */
#include <linux/blkdev.h>
#include <linux/khugepaged.h>
#include <linux/printk.h>
#include "kernel.h"

/* Nobody collapses pages: nothing is kept free for that. */
void khugepaged_min_free_kbytes_update(void)
{
	HOST_STUB("stubbed");
}

/* Nothing is printed under a lock that printing takes. */
void __printk_deferred_enter(void)
{
	HOST_STUB("stubbed");
}

void __printk_deferred_exit(void)
{
	HOST_STUB("stubbed");
}

/* No page is written out: there is neither swap nor a file. */
void blk_start_plug(struct blk_plug *plug)
{
	HOST_STUB("stubbed");
}

void blk_finish_plug(struct blk_plug *plug)
{
	HOST_STUB("stubbed");
}
