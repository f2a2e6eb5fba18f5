# SPDX-License-Identifier: GPL-2.0-only
"""Memory around a fork on a made-up build, for tests of its oracle."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from experiments.fork.oracle.cases import (
    correctness_mappings,
)
from experiments.fork.oracle.fork import fork, zap
from experiments.fork.oracle.images import (
    Moment,
    State,
    initial,
    page_dtype,
)
from ream.oracle.mapping import Mapping as Vma
from ream.oracle.mapping import (
    Place,
)
from ream.oracle.memmap import first_tail_dtype

MADE_UP = """
sizeof.page=64 page.flags=0 page.compound_head=8 page.mapping=24 page.index=32
page.private=40 page._mapcount=48 page._refcount=52 folio._flags_1=64
folio._large_mapcount=80 folio._entire_mapcount=84 folio._nr_pages_mapped=88
folio._pincount=92 folio._folio_nr_pages=96 folio._deferred_list=144 PG_locked=0
PG_referenced=2 PG_uptodate=3 PG_dirty=4 PG_lru=5 PG_head=6 PG_large_rmappable=9
PG_anon_exclusive=11
PG_swapbacked=17 NODES_PGSHIFT=58 ZONES_PGSHIFT=56 ZONE_NORMAL=1
TAIL_MAPPING=0xDEAD000000000400 PAGE_MAPPING_ANON=1 ENTIRELY_MAPPED=0x800000
SWP_DEVICE_WRITE=27 SWP_DEVICE_READ=28 SWP_DEVICE_EXCLUSIVE_WRITE=29 SWP_DEVICE_EXCLUSIVE_READ=30
GUP_PIN_COUNTING_BIAS=1024 MM_FILEPAGES=0 MM_ANONPAGES=1 MM_SWAPENTS=2 MM_SHMEMPAGES=3
MAX_SWAPFILES=23 SWP_HWPOISON=23 SWP_MIGRATION_READ=24 SWP_MIGRATION_READ_EXCLUSIVE=25
SWP_MIGRATION_WRITE=26 SWP_PTE_MARKER=31 PTE_MARKER_UFFD_WP=1 PTE_MARKER_POISONED=2
MEM_SOFT_DIRTY=1 HAVE_ARCH_USERFAULTFD_WP=1 MARKS_UFFD_WP=1
"""
FACTS = {name: int(value, 0) for name, value in (word.split("=") for word in MADE_UP.split())}
BARE = {**FACTS, "MEM_SOFT_DIRTY": 0, "HAVE_ARCH_USERFAULTFD_WP": 0, "MARKS_UFFD_WP": 0}
NEWER = {
    **{name: value for name, value in FACTS.items() if not name.startswith("SWP_DEVICE_EXCLUSIVE")},
    "SWP_DEVICE_EXCLUSIVE": 29,
    "TAILS_HOLD_MASK": 1,
    "folio._mm_id_mapcount": 96,
    "folio._mm_ids": 104,
    "folio._folio_nr_pages": 120,
    "FOLIO_MM_IDS_SHARED_BIT": 1 << 63,
}
"""Facts of a kernel that tracks which processes map a large folio."""
PLACE = Place(
    map=0xFFFFEA0004000000, first_pfn=0x100000, anon_vma=0xFFFF888000001000, file=0xFFFF888000002000
)
CASES = correctness_mappings()
SEEDS = st.integers(0, 1 << 32)

ORDERS = range(10)
MOMENTS: tuple[Moment, ...] = ("fresh", "forked", "orphaned", "gone", "inherited", "discarded")


def facts_for(vma: Vma) -> Mapping[str, int]:
    """Facts of the first kernel that has every kind of entry in the VMA."""
    return next(facts for facts in (FACTS, NEWER) if not vma.missing_facts(facts))


def fresh(vma: Vma, facts: Mapping[str, int] = FACTS) -> State:
    return initial(vma, facts, PLACE)


def forked(vma: Vma) -> State:
    return fork(vma, fresh(vma), FACTS)


def pages(state: State) -> NDArray[Any]:
    return state.descriptors.reshape(-1).view(page_dtype(FACTS))


def tails(state: State, facts: Mapping[str, int] = FACTS) -> NDArray[Any]:
    return state.descriptors.reshape(-1).view(first_tail_dtype(facts))


def exclusive(state: State) -> NDArray[np.bool_]:
    return (pages(state)["flags"] >> np.uint64(FACTS["PG_anon_exclusive"]) & np.uint64(1)) == 1


def child_of(state: State) -> list[int]:
    assert state.child is not None
    held: list[int] = state.child.tolist()
    return held


def differing(one: State, other: State) -> set[str]:
    """What of two states is not the same."""
    names = {"parent_rss", "child_rss", "taken", "ret"}
    calls = {"swap_duplicates", "swap_frees", "copies", "unmapped_anon", "unmapped_file"}
    found = {name for name in names if getattr(one, name) != getattr(other, name)}
    found |= {name for name in calls if getattr(one.calls, name) != getattr(other.calls, name)}
    for name in ("parent", "child", "descriptors"):
        if not np.array_equal(getattr(one, name), getattr(other, name)):
            found.add(name)
    for name in ("deferred", "dirtied", "accessed", "freed"):
        if not np.array_equal(getattr(one.calls, name), getattr(other.calls, name)):
            found.add(name)
    return found


def story(vma: Vma, facts: Mapping[str, int] = FACTS) -> list[State]:
    """Two forks, and everybody unmaps, the second child's entries without a word about files."""
    states = [initial(vma, facts, PLACE)]
    states.append(fork(vma, states[-1], facts))
    states.append(zap(vma, states[-1], "child", facts))
    states.append(fork(vma, states[-1], facts))
    states.append(zap(vma, states[-1], "child", facts, drop_markers=False))
    states.append(zap(vma, states[-1], "parent", facts))
    return states
