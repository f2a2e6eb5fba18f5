/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long swdma takes at least: a declared model of a device, instead of as
 * fast as a thread can copy. Only swdma.c includes this, once.
 */
#ifndef SWDMA_MODEL_H
#define SWDMA_MODEL_H

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>

#include "faults.h"

static unsigned int setup_ns;
module_param(setup_ns, uint, 0644);
MODULE_PARM_DESC(setup_ns, "what the model takes for each descriptor");

static unsigned int mb_per_s;
module_param(mb_per_s, uint, 0644);
MODULE_PARM_DESC(mb_per_s, "bandwidth of a channel of the model; 0: no model");

/* Since the module was loaded. */
static atomic_long_t late;
module_param_cb(late, &count_ops, &late, 0444);
MODULE_PARM_DESC(late, "times that copying took longer than the model");

/* Of one descriptor; 0 without a model. */
static u64 model_time_ns(size_t len)
{
	unsigned int rate = READ_ONCE(mb_per_s);

	return rate ? READ_ONCE(setup_ns) + div_u64((u64)len * 1000, rate) : 0;
}

/* Be done no sooner than the model; a thread that was slower is counted. */
static void model_wait(u64 due_ns)
{
	u64 now_ns = ktime_get_ns();

	if (now_ns > due_ns) {
		atomic_long_inc(&late);
		return;
	}
	while ((now_ns = ktime_get_ns()) < due_ns) {
		unsigned long us = div_u64(due_ns - now_ns, NSEC_PER_USEC);

		if (us)
			usleep_range(us, us);
		else
			cpu_relax();
	}
}

#endif
