/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parameters of swdma that may change while it runs, and its counters.
 * Only swdma.c includes this, once.
 *
 * Descriptors are numbered from 1 in the order of submission, over all channels,
 * and the k-th
 *
 *   fail_at=k    copies one half and reports DMA_TRANS_WRITE_FAILED
 *   short_at=k   copies one half and reports success with a residue
 *   stall_at=k   copies one half and stops for stall_ms (0: for good), then
 *                does the rest, late; terminated meanwhile, it never does,
 *                unless keeps_writing=1: then terminating returns 0 and drops
 *                the callback, and that is all
 *   vanish_at=k  takes its channel away
 *   drop_at=k    copies all, and never calls back, as drivers that abort a
 *                descriptor without a word
 *
 * and with reorder=1 a channel completes what was issued in reverse order. A
 * write to one of the five, whatever the value, starts the numbers anew and
 * lets a stalled descriptor go on.
 *
 * Loaded with results=0 it calls back after an error as after a copy, as the
 * driver of PTDMA does. With waits=1 prep sleeps until there is a descriptor, as
 * that of idxd does. Either way it does not say that it reports errors.
 */
#ifndef SWDMA_FAULTS_H
#define SWDMA_FAULTS_H

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>

static bool reorder;
module_param(reorder, bool, 0644);
MODULE_PARM_DESC(reorder, "1: complete what was issued in reverse order");

static unsigned int stall_ms;
module_param(stall_ms, uint, 0644);
MODULE_PARM_DESC(stall_ms, "length of a stall; 0: until terminated");

static bool results = true;
module_param(results, bool, 0444);
MODULE_PARM_DESC(results, "0: no callback gets a result, as of some drivers");

static bool waits;
module_param(waits, bool, 0444);
MODULE_PARM_DESC(waits, "1: prep waits for a free descriptor, however long that takes");

static bool keeps_writing;
module_param(keeps_writing, bool, 0644);
MODULE_PARM_DESC(keeps_writing, "1: terminated, it forgets what it then goes on with");

/* The number of the last descriptor that was submitted. */
static atomic_t last_number;

/* Let descriptors that stall go on. */
static void end_stalls(void);

static int fault_set(const char *text, const struct kernel_param *param)
{
	int error = param_set_uint(text, param);

	if (error)
		return error;
	atomic_set(&last_number, 0);
	end_stalls();
	return 0;
}

static const struct kernel_param_ops fault_ops = {
	.set = fault_set,
	.get = param_get_uint,
};

static unsigned int fail_at;
module_param_cb(fail_at, &fault_ops, &fail_at, 0644);
MODULE_PARM_DESC(fail_at, "the descriptor that fails; 0: none");

static unsigned int short_at;
module_param_cb(short_at, &fault_ops, &short_at, 0644);
MODULE_PARM_DESC(short_at, "the descriptor that leaves a residue; 0: none");

static unsigned int stall_at;
module_param_cb(stall_at, &fault_ops, &stall_at, 0644);
MODULE_PARM_DESC(stall_at, "the descriptor that stalls; 0: none");

static unsigned int vanish_at;
module_param_cb(vanish_at, &fault_ops, &vanish_at, 0644);
MODULE_PARM_DESC(vanish_at, "the descriptor whose channel vanishes; 0: none");

static unsigned int drop_at;
module_param_cb(drop_at, &fault_ops, &drop_at, 0644);
MODULE_PARM_DESC(drop_at, "the descriptor that is never called back for; 0: none");

static int count_get(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%ld\n", atomic_long_read(param->arg));
}

static const struct kernel_param_ops count_ops = {
	.get = count_get,
};

/* Since the module was loaded; exact when no channel has anything to do. */
static atomic_long_t descriptors;
module_param_cb(descriptors, &count_ops, &descriptors, 0444);
MODULE_PARM_DESC(descriptors, "descriptors done with, faulty and aborted ones, too");

static atomic_long_t bytes;
module_param_cb(bytes, &count_ops, &bytes, 0444);
MODULE_PARM_DESC(bytes, "bytes that were copied");

static atomic_long_t faults;
module_param_cb(faults, &count_ops, &faults, 0444);
MODULE_PARM_DESC(faults, "faults that were injected");

static atomic_long_t refused;
module_param_cb(refused, &count_ops, &refused, 0444);
MODULE_PARM_DESC(refused, "requests of a wrong size or alignment");

/* Is it this descriptor's turn to fail in this way? Ask once: it counts. */
static bool is_chosen(const unsigned int *fault_at, unsigned int number)
{
	if (READ_ONCE(*fault_at) != number)
		return false;
	atomic_long_inc(&faults);
	return true;
}

/* Where prep waits: sleep once more, and then look again. */
static bool has_waited(void)
{
	if (waits)
		usleep_range(1000, 2000);
	return waits;
}

#endif
