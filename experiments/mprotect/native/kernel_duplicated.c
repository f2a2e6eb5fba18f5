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
