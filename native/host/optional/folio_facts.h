/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Facts of a kernel that any oracle of folios and page tables needs, computed
 * with that kernel's own headers. An experiment's facts.h begins with this file.
 * It may continue with the same macros, and must undefine them. All of it is part
 * of an array of { name, value }. The file that includes it must include
 * linux/mm.h and mm/internal.h before.
 */
#include "page_facts.h"

#ifdef HAVE_PAGE_INDEX
	OFFSET(page, index),
#else
	{ "page.index", offsetof(struct folio, index) },
#endif
	CONSTANT(PG_locked),
	CONSTANT(PG_referenced),
	CONSTANT(PG_uptodate),
	CONSTANT(PG_dirty),
	CONSTANT(PG_lru),
	CONSTANT(PG_active),
	CONSTANT(PG_workingset),
	CONSTANT(PG_swapbacked),
	CONSTANT(PG_anon_exclusive),
	CONSTANT(PG_large_rmappable),
	CONSTANT(ZONE_NORMAL),
#ifdef HAVE_PAGE_MAPPING_ANON
	CONSTANT(PAGE_MAPPING_ANON),
#else
	{ "PAGE_MAPPING_ANON", FOLIO_MAPPING_ANON },
#endif
	CONSTANT(ENTIRELY_MAPPED),
	CONSTANT(PMD_SIZE),
	CONSTANT(MM_ANONPAGES),
	CONSTANT(VM_READ),
	CONSTANT(VM_WRITE),
	CONSTANT(VM_MAYREAD),
	CONSTANT(VM_MAYWRITE),
	CONSTANT(VM_MAYEXEC),
	CONSTANT(VM_ACCOUNT),
	CONSTANT(VM_SOFTDIRTY), /* 0 without CONFIG_MEM_SOFT_DIRTY */
	OPTION(ARM64),
	OPTION(MEM_SOFT_DIRTY),
	OPTION(HAVE_ARCH_USERFAULTFD_WP),
	{ "MARKS_UFFD_WP", IS_ENABLED(CONFIG_PTE_MARKER_UFFD_WP) },
