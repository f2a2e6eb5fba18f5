// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's side: compiled by kbuild in each variant's own tree. */
#include <linux/bitmap.h>
#include "kernel.h"
#include "null.h"

static const struct null_ops ops = { .complement = __bitmap_complement };

const void *const host_experiment_ops = &ops;

const struct host_fact host_experiment_facts[] = {
	{ "BITS_PER_LONG", BITS_PER_LONG },
	{ }
};
