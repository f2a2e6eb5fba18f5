/* SPDX-License-Identifier: GPL-2.0-only */
/* What runner.c asks of glue.c. */
#ifndef REAM_NULL_H
#define REAM_NULL_H

/**
 * struct null_ops - what one variant can do
 * @complement: The kernel's __bitmap_complement().
 */
struct null_ops {
	void (*complement)(unsigned long *to, const unsigned long *from,
			   unsigned int nr_bits);
};

#endif
