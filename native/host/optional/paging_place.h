/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Addresses of the frames of experiments with page tables. They are the same for
 * every variant, because struct pages and page table entries contain addresses
 * and PFNs. Frames from PAGING_TABLE_PFN on are page tables and other allocations
 * of the kernel. Frames from PAGING_DATA_PFN on are those that are mapped. Both
 * sides include this.
 */
#ifndef REAM_PAGING_PLACE_H
#define REAM_PAGING_PLACE_H

#define PAGING_TABLE_PFN 0x100000UL
#define PAGING_DATA_PFN 0x200000UL
#if defined(REAM_AT_EL1) || (defined(CONFIG_ARM64) && !defined(CONFIG_REAM_HOSTED))
/* The addresses that arm64 itself uses: tests/native/el1 */
#define PAGING_MAP_ADDRESS 0xfffffdffc0000000UL
#define PAGING_RAM_ADDRESS 0xffff000000000000UL
#else
#define PAGING_MAP_ADDRESS 0x200000000000UL	/* descriptor of PAGING_TABLE_PFN */
#define PAGING_RAM_ADDRESS 0x300000000000UL	/* contents of PAGING_TABLE_PFN */
#endif
#define PAGING_ANON_VMA_ADDRESS 0x1fff00000000UL
#define PAGING_MAPPING_ADDRESS 0x1fff00010000UL

#endif
