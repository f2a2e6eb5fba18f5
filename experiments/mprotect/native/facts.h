/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the oracle of mprotect() needs to know of a kernel. Includes are the
 * includer's: those of mapping_facts.h.
 */
#include "mapping_facts.h"

	CONSTANT(MM_CP_TRY_CHANGE_WRITABLE),
	CONSTANT(MM_CP_PROT_NUMA),
	CONSTANT(MM_CP_UFFD_WP),
	CONSTANT(MM_CP_UFFD_WP_RESOLVE),
	OPTION(NUMA_BALANCING),
	OPTION(MMU_GATHER_MERGE_VMAS),
#ifdef pte_needs_flush
	{ "PTE_NEEDS_FLUSH", 1 },
#else
	{ "PTE_NEEDS_FLUSH", 0 },	/* whatever changed is flushed */
#endif
#ifdef HAVE_MPROTECT_CAN_MAP_PROT_NUMA
	{ "NUMA_SPARES_ALL_PINNED", 1 },
#else
	{ "NUMA_SPARES_ALL_PINNED", 0 },	/* in mappings that copy on write only */
#endif

#undef OFFSET
#undef CONSTANT
#undef OPTION
