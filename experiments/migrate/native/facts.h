/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the oracle of migration needs to know of a kernel. Includes are the
 * includer's: those of folio_facts.h, linux/migrate.h, linux/poison.h, linux/swap.h
 * and linux/swapops.h.
 */
#include "folio_facts.h"

	OFFSET(page, lru),
	CONSTANT(PG_writeback),
	CONSTANT(PG_checked),
	CONSTANT(PG_unevictable),
	CONSTANT(PG_mlocked),
	CONSTANT(PG_hwpoison),
	CONSTANT(PG_partially_mapped),
	CONSTANT(LIST_POISON1),
	CONSTANT(LIST_POISON2),
	CONSTANT(HPAGE_PMD_ORDER),
	CONSTANT(SWP_HWPOISON),
	CONSTANT(MIGRATE_ASYNC),
	CONSTANT(MIGRATE_SYNC_LIGHT),
	CONSTANT(MIGRATE_SYNC),
	CONSTANT(MR_COMPACTION),
	CONSTANT(MR_MEMORY_FAILURE),
	CONSTANT(MR_MEMORY_HOTPLUG),
	CONSTANT(MR_SYSCALL),
	CONSTANT(MR_MEMPOLICY_MBIND),
	CONSTANT(MR_NUMA_MISPLACED),
	CONSTANT(MR_CONTIG_RANGE),
	CONSTANT(MR_LONGTERM_PIN),
	CONSTANT(MR_DEMOTION),
	CONSTANT(MR_DAMON),
	CONSTANT(VM_LOCKED),
	{ "MLOCKS_WHOLE_FOLIOS", __is_defined(HAVE_MLOCKS_WHOLE_FOLIOS) },

#undef OFFSET
#undef CONSTANT
#undef OPTION
