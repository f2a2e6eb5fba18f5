/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the frames of experiments with page tables lie: the same for every
 * variant, since descriptors and page table entries hold addresses and frame
 * numbers. Frames from PAGING_TABLE_PFN on are page tables and whatever else
 * the kernel allocates; those from PAGING_DATA_PFN on are what is mapped.
 * Included by both sides.
 */
#ifndef REAM_PAGING_PLACE_H
#define REAM_PAGING_PLACE_H

#define PAGING_TABLE_PFN 0x100000UL
#define PAGING_DATA_PFN 0x200000UL
#if defined(REAM_AT_EL1) || (defined(CONFIG_ARM64) && !defined(CONFIG_REAM_HOSTED))
/* Where arm64 itself has both: tests/native/el1 */
#define PAGING_MAP_ADDRESS 0xfffffdffc0000000UL
#define PAGING_RAM_ADDRESS 0xffff000000000000UL
#else
#define PAGING_MAP_ADDRESS 0x200000000000UL	/* descriptor of PAGING_TABLE_PFN */
#define PAGING_RAM_ADDRESS 0x300000000000UL	/* contents of PAGING_TABLE_PFN */
#endif
#define PAGING_ANON_VMA_ADDRESS 0x1fff00000000UL
#define PAGING_MAPPING_ADDRESS 0x1fff00010000UL

#endif
