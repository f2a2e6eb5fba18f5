/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How swdma copies: past the caches, as a device writes to memory, or in a way
 * that survives a source that cannot be read.
 */
#ifndef SWDMA_COPY_H
#define SWDMA_COPY_H

#include <linux/dma-direct.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <linux/uaccess.h>

static bool streaming = true;
module_param(streaming, bool, 0644);
MODULE_PARM_DESC(streaming, "1: write past the caches, as hardware does; 0: survive poison");

static bool use_streaming(void)
{
	return IS_ENABLED(CONFIG_ARCH_HAS_UACCESS_FLUSHCACHE) &&
	       READ_ONCE(streaming);
}

/* One page at a time: neither end is mapped for good with HIGHMEM. */
static bool copy_piece(struct device *dev, dma_addr_t dst, dma_addr_t src,
		       size_t len)
{
	phys_addr_t to = dma_to_phys(dev, dst), from = dma_to_phys(dev, src);
	void *target = kmap_local_page(pfn_to_page(PHYS_PFN(to)));
	void *source = kmap_local_page(pfn_to_page(PHYS_PFN(from)));
	unsigned long left;

	if (use_streaming()) {
		memcpy_flushcache(target + offset_in_page(to),
				  source + offset_in_page(from), len);
		left = 0;
	} else {
		left = copy_mc_to_kernel(target + offset_in_page(to),
					 source + offset_in_page(from), len);
	}
	kunmap_local(source);
	kunmap_local(target);
	return !left;
}

#endif /* SWDMA_COPY_H */
