# SPDX-License-Identifier: GPL-2.0-only
"""Files and functions that random programs use, and what they give them.

A line is a file and the values that may be written to it; every file is read, too.
"""

from collections.abc import Mapping

_FOLDERS = """
/proc/sys/vm
  swappiness 0 60 200
  page-cluster 0 3 5
  overcommit_memory 0 1 2
  overcommit_ratio 50
  overcommit_kbytes 0
  zone_reclaim_mode 0 1 7
  drop_caches 1 2 3
  stat_refresh 1
  numa_stat 0 1
  compact_memory 1
  compaction_proactiveness 0 20 90
  extfrag_threshold 0 500
  compact_unevictable_allowed 0 1
  nr_hugepages 0 4 20
  nr_hugepages_mempolicy 3
  nr_overcommit_hugepages 0 4
  hugetlb_optimize_vmemmap 0
  memory_failure_early_kill 0 1
  oom_kill_allocating_task 0 1
  dirty_background_ratio 1 10
  dirty_background_bytes 8388608
  dirty_ratio 2 20
  dirty_bytes 16777216
  dirty_writeback_centisecs 100 500
  min_free_kbytes 2000 4000
  watermark_boost_factor 0 15000
  watermark_scale_factor 10 30
  percpu_pagelist_high_fraction 0 8
  lowmem_reserve_ratio 256,256,32,0,0
  numa_zonelist_order node
  min_unmapped_ratio 1 50
  min_slab_ratio 5
  max_map_count 12 65530
  admin_reserve_kbytes 0 8192
  user_reserve_kbytes 0 65536
  oom_dump_tasks 0 1
  enable_soft_offline 0 1
  dirty_expire_centisecs 100 3000
  defrag_mode 0 1
  movable_gigantic_pages 0 1
/sys/kernel/mm/ksm
  run 0 1 1 2
  pages_to_scan 100 1000
  sleep_millisecs 5 20
  merge_across_nodes 0 1
  use_zero_pages 0 1
  max_page_sharing 2 256
  smart_scan 0 1
  advisor_mode none scan-time
  advisor_max_cpu 70
  advisor_min_pages_to_scan 500
  advisor_max_pages_to_scan 30000
  advisor_target_scan_time 200
  stable_node_chains_prune_millisecs 10
  pages_shared
  pages_sharing
  pages_unshared
  pages_volatile
  pages_skipped
  pages_scanned
  ksm_zero_pages
  general_profit
  stable_node_dups
  stable_node_chains
  full_scans
/sys/kernel/mm/transparent_hugepage
  enabled always madvise never
  defrag always defer madvise defer+madvise never
  use_zero_page 0 1
  shmem_enabled always within_size advise never
  hpage_pmd_size
  hugepages-64kB/enabled always madvise never inherit
  hugepages-16kB/enabled always inherit
  hugepages-1024kB/enabled always inherit
  hugepages-2048kB/enabled always madvise never inherit
  hugepages-2048kB/shmem_enabled always within_size advise never inherit
  hugepages-64kB/shmem_enabled always within_size advise never inherit
  hugepages-16kB/shmem_enabled always inherit never
  hugepages-2048kB/shmem_enabled always inherit never
  hugepages-64kB/stats/anon_fault_alloc
  hugepages-64kB/stats/nr_anon
  hugepages-64kB/stats/swpout
  hugepages-64kB/stats/split
  hugepages-64kB/stats/split_failed
  hugepages-64kB/stats/split_deferred
  hugepages-64kB/stats/nr_anon_partially_mapped
  hugepages-64kB/stats/anon_fault_fallback
  hugepages-64kB/stats/anon_fault_fallback_charge
  hugepages-64kB/stats/shmem_alloc
  hugepages-64kB/stats/shmem_fallback
  hugepages-64kB/stats/swpin
  hugepages-64kB/stats/swpout_fallback
  hugepages-64kB/stats/zswpout
/sys/kernel/mm/transparent_hugepage/khugepaged
  defrag 0 1
  max_ptes_none 0 511
  max_ptes_swap 0 64
  max_ptes_shared 0 256
  pages_to_scan 512 4096
  scan_sleep_millisecs 10 1000
  alloc_sleep_millisecs 10
  pages_collapsed
  full_scans
/sys/kernel/mm/hugepages/hugepages-2048kB
  nr_hugepages 0 6
  nr_overcommit_hugepages 0 2
  free_hugepages
  resv_hugepages
  surplus_hugepages
/sys/kernel/mm/hugepages/hugepages-1048576kB
  nr_hugepages 0 1
  demote 1
  demote_size 2M
  free_hugepages
/sys/devices/system/node/node1/hugepages/hugepages-2048kB
  nr_hugepages 0 3
  free_hugepages
  surplus_hugepages
/sys/kernel/mm
  page_idle/bitmap 0
  lru_gen/enabled 0 1 3 7
  lru_gen/min_ttl_ms 0 1000
  swap/vma_ra_enabled 0 1
  numa/demotion_enabled 0 1
  mempolicy/weighted_interleave/node0 0 3
  mempolicy/weighted_interleave/node1 1 255
  mempolicy/weighted_interleave/auto 0 1
/sys/kernel/slab/kmalloc-64
  min_partial 5
  cpu_partial 0 30
  shrink 1
  validate 1
  remote_node_defrag_ratio 100
  aliases
  align
  sanity_checks
  red_zone
  total_objects
  order
  objs_per_slab
  object_size
  slab_size
  ctor
  partial
  cpu_slabs
  objects_partial
  slabs_cpu_partial
  reclaim_account
  hwcache_align
  destroy_by_rcu
/sys/module/zswap/parameters
  enabled 0 1 1
  shrinker_enabled 0 1
  max_pool_percent 0 20
  accept_threshold_percent 90
  compressor lzo lzo-rle
/sys/module/memory_hotplug/parameters
  online_policy contig-zones
/sys/fs/cgroup/g
  memory.max 30M 64M max
  memory.high 20M max
  memory.low 10M
  memory.min 5M
  memory.reclaim 1M
  memory.oom.group 0 1
  memory.swap.max 10M max
  memory.swap.high 5M max
  memory.zswap.max 1M max
  memory.zswap.writeback 0 1
  memory.peak 0
  memory.current
  memory.events
  memory.events.local
  memory.stat
  memory.numa_stat
  memory.swap.current
  memory.swap.events
  memory.swap.peak
  memory.zswap.current
  hugetlb.2MB.max 4M 10M max
  hugetlb.2MB.rsvd.max 4M max
  hugetlb.2MB.current
  hugetlb.2MB.rsvd.current
  hugetlb.2MB.events
  hugetlb.2MB.events.local
  hugetlb.2MB.numa_stat
/proc
  vmstat
  zoneinfo
  buddyinfo
  pagetypeinfo
  swaps
  vmallocinfo
"""


def _read(text: str) -> Mapping[str, tuple[str, ...]]:
    found, folder = {}, ""
    for line in text.split("\n"):
        match line.split():
            case [name, *values] if line.startswith(" "):
                found[f"{folder}/{name}"] = tuple(values)
            case [folder]:
                pass
    return found


FILES = _read(_FOLDERS)

CALLS: Mapping[str, tuple[str, str]] = {
    "map_pages": ("0 1 2", "1 8 64"),
    "vmalloc": ("0 2 3 5", "1 10 700"),
    "alloc_contig": ("0 1", "1 600"),
    "alloc_pages": ("0 1 2 3", "5"),
    "slab": ("64 700 5000", "16"),
    "charge": ("64 5000 65536", "10"),
    "atomic": ("64 700 9000", "4 60"),
    "mempool": ("0 1", "10"),
    "percpu": ("16 32768", "128"),
    "cma": ("0 9", "10 1000"),
    "offline": ("1 2 3 5", "0 0 1"),
    "report_free": ("4000", "9"),
    "lock_all": ("0", "0"),
    "unpoison": ("0", "0"),
    "split": ("0 0 2 4", "0"),
    "tmpfs": ("0 1 2 4", "0"),
    "mmap_anywhere": ("0 256", "10 512 600"),
    "map_low": ("0 1 2", "1 3 10"),
    "brk": ("0 10 600", "0"),
    "map_device": ("0 1 2 3 4 5", "4"),
    "get_mempolicy": ("0 4", "0"),
    "memfd": ("2 4 6", "1 2 4 8 16"),
    "memfd_secret": ("3", "0"),
    "lseek": ("0 1 2", "0 100"),
    "pin_file": ("0 1", "20"),
    "proc": ("0 1 2 3 4 5", "0"),
    "clear_refs": ("1 2 3 4 4 4 5", "0"),
}
"""Functions, and their numbers x and y."""

CALLS_ON_PAGES: Mapping[str, tuple[str, str]] = {
    "get_pages": ("0 1 2 3 4 5 6 7", "0 1"),
    "access": ("0 1", "0"),
    "pages_status": ("0", "0"),
    "fixup_fault": ("0 1", "0"),
    "exclusive": ("0", "0"),
    "get_mempolicy": ("2 3", "0"),
    "home_node": ("0 1", "0"),
    "remap_file_pages": ("0 64", "0"),
    "mseal": ("0", "0"),
    "mmap_anywhere": ("0", "0"),
    "name": ("0 1 2", "0"),
    "numa_hint": ("0 0 1", "0"),
    "split": ("0 0 2 3 5", "0"),
    "hmm": ("0 1", "0"),
    "migrate_vma": ("0", "0"),
    "to_device": ("0", "0"),
    "unreadable": ("0", "0"),
    "pagemap": ("0", "0"),
    "pagemap_scan": ("0 2 16 128", "0 0 1 2 3"),
}


PARAMETERS: Mapping[str, str] = {
    "cgroup.memory": "nokmem nosocket",
    "hugepages": "4 20",
    "init_on_alloc": "1",
    "init_on_free": "1",
    "movablecore": "128M 400M",
    "slab_nomerge": "1",
    "thp_anon": "64K:always 16K-256K:inherit",
    "transparent_hugepage": "always madvise never",
}
"""Parameters of boot that memory management reads, and their values."""
