# SPDX-License-Identifier: GPL-2.0-only
"""A kernel that is made up, for tests of the oracle of migration."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.fork.oracle.images import page_dtype
from experiments.migrate.oracle.folios import Migration, Place
from experiments.migrate.oracle.migrate import After, migrate
from ream.oracle.memmap import descriptor_dtype, first_tail_dtype

MADE_UP = """
sizeof.page=64 page.flags=0 page.lru=8 page.compound_head=8 page.mapping=24 page.index=32
page.private=40 page._mapcount=48 page._refcount=52 folio._flags_1=64
folio._large_mapcount=80 folio._entire_mapcount=84 folio._nr_pages_mapped=88
folio._pincount=92 folio._folio_nr_pages=96 folio._deferred_list=144
PG_locked=0 PG_writeback=1 PG_referenced=2 PG_uptodate=3 PG_dirty=4 PG_lru=5 PG_head=6
PG_active=8 PG_workingset=9 PG_checked=10 PG_large_rmappable=9 PG_anon_exclusive=11
PG_partially_mapped=16 PG_swapbacked=17 PG_unevictable=18 PG_mlocked=19 PG_hwpoison=20
NODES_PGSHIFT=58 ZONES_PGSHIFT=56 ZONE_NORMAL=1 TAIL_MAPPING=0xDEAD000000000400
PAGE_MAPPING_ANON=1 SWP_HWPOISON=31 ENTIRELY_MAPPED=0x800000 LIST_POISON1=0xDEAD000000000100
LIST_POISON2=0xDEAD000000000122 MEM_SOFT_DIRTY=1 HAVE_ARCH_USERFAULTFD_WP=1 MARKS_UFFD_WP=1
"""
FACTS = {name: int(value, 0) for name, value in (word.split("=") for word in MADE_UP.split())}
PLACE = Place(
    src_map=0xFFFFEA0004000000,
    dst_map=0xFFFFEA0008000000,
    src_pfn=0x100000,
    dst_pfn=0x200000,
    anon_vma=0xFFFF888000001000,
    list=0xFFFF888000002000,
    src_queue=0xFFFF888000003000,
    dst_queue=0xFFFF888000004000,
)


def after(migration: Migration, *, batched: bool = False, place: Place = PLACE) -> After:
    return migrate(migration, FACTS, place, batched=batched)


def pages(octets: NDArray[np.uint8]) -> NDArray[Any]:
    return octets.reshape(-1).view(page_dtype(FACTS))


def tails(octets: NDArray[np.uint8]) -> NDArray[Any]:
    return octets.reshape(-1).view(first_tail_dtype(FACTS))


def chain(octets: dict[str, NDArray[np.uint8]], head: int, offset: int) -> list[tuple[str, int]]:
    """Walk a list from its last member back to its head, which is not in memory."""
    maps = {"src": PLACE.src_map, "dst": PLACE.dst_map}
    dtype = descriptor_dtype({"next": "<u8", "prev": "<u8"}, [offset, offset + 8], FACTS)
    members = {}
    for side, array in octets.items():
        for page, (ahead, behind) in enumerate(array.reshape(-1).view(dtype).tolist()):
            address = maps[side] + page * FACTS["sizeof.page"] + offset
            members[address] = (side, page, ahead, behind)
    at = next((where for where, (*_, last, _) in members.items() if last == head), head)
    found: list[tuple[str, int]] = []
    behind = head
    while at != head:
        side, page, ahead, at_before = members[at]
        assert ahead == behind
        found.append((side, page))
        behind, at = at, at_before
    return found[::-1]
