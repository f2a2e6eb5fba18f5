// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the mprotect experiment: functions that mean the same as the kernel's,
 * whose own files are not hosted.
 */
#include <linux/memory-tiers.h>
#include <linux/mm.h>
#include <linux/sched/sysctl.h>
#include <linux/userfaultfd_k.h>
#include "internal.h"
#include "kernel.h"
#include "mprotect_kernel.h"

/* No VMA here has a context that asks for it. fs/userfaultfd.c */
bool userfaultfd_wp_unpopulated(struct vm_area_struct *vma)
{
	HOST_STUB("duplicated");
	return false;
}

/* All memory is of one kind. mm/memory-tiers.c */
bool node_is_toptier(int node)
{
	HOST_STUB("duplicated");
	return true;
}

/* Where memory has tiers, the slow ones note when it was used. mm/memory-tiers.c */
bool folio_use_access_time(struct folio *folio)
{
	HOST_STUB("duplicated");
	return (sysctl_numa_balancing_mode & NUMA_BALANCING_MEMORY_TIERING) &&
	       !node_is_toptier(folio_nid(folio));
}

#ifdef HAVE_MPROTECT_CAN_MAP_PROT_NUMA
/*
 * Whether NUMA balancing shall see the next access to a folio; what 6.12 asks
 * in change_pte_range() itself. mm/mempolicy.c
 */
bool folio_can_map_prot_numa(struct folio *folio, struct vm_area_struct *vma,
			     bool is_private_single_threaded)
{
	HOST_STUB("duplicated");
	if (!folio || folio_is_zone_device(folio) || folio_test_ksm(folio) ||
	    (vma_is_cow_mapping(vma) && folio_maybe_mapped_shared(folio)) ||
	    folio_maybe_dma_pinned(folio) ||
	    (folio_is_file_lru(folio) && folio_test_dirty(folio)))
		return false;
	if (is_private_single_threaded && folio_nid(folio) == numa_node_id())
		return false;
	if (!(sysctl_numa_balancing_mode & NUMA_BALANCING_NORMAL) &&
	    node_is_toptier(folio_nid(folio)))
		return false;
	if (folio_use_access_time(folio))
		folio_xchg_access_time(folio, jiffies_to_msecs(jiffies));
	return true;
}
#endif
