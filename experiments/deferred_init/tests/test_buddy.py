# SPDX-License-Identifier: GPL-2.0-only
"""The oracle of deferred initialisation against an allocator that frees page after page."""

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from experiments.deferred_init.buddy import (
    ULONG_MAX,
    DeferredNode,
    Range,
    blocks,
    clipped,
    free_ranges,
    grown,
    image_chunks,
    managed_pages,
    nr_free,
    usage_bytes,
)

SIZE = 64
SECTION = 64
BASE = 4 * SECTION
END = BASE + 4 * SECTION
MAP = 0xFFFFEA0000000000
POISON = (0xDEAD000000000100, 0xDEAD000000000122)
BUDDY = 0xF0000000
MOVABLE, UNMOVABLE = 1, 0


def facts_of(max_order: int, pageblock_order: int) -> Mapping[str, int]:
    """A kernel of small sections and blocks, laid out as an x86-64 one."""
    usage_bits = (SECTION >> pageblock_order) * 4
    return {
        "sizeof.page": SIZE,
        "page.flags": 0,
        "page.lru": 8,
        "page.private": 40,
        "page.page_type": 48,
        "page._refcount": 52,
        "list_head.next": 0,
        "list_head.prev": 8,
        "NODES_PGSHIFT": 58,
        "ZONES_PGSHIFT": 56,
        "LAST_CPUPID_PGSHIFT": 40,
        "LAST_CPUPID_MASK": 0xFFFF,
        "ZONE_NORMAL": 1,
        "PGTY_buddy": BUDDY,
        "LIST_POISON1": POISON[0],
        "LIST_POISON2": POISON[1],
        "FREES_BY_RANGE": 0,
        "MAX_PAGE_ORDER": max_order,
        "NR_PAGE_ORDERS": max_order + 1,
        "MIGRATE_UNMOVABLE": UNMOVABLE,
        "MIGRATE_MOVABLE": MOVABLE,
        "MIGRATE_TYPES": 5,
        "PAGE_SIZE": 4096,
        "PAGES_PER_SECTION": SECTION,
        "pageblock_nr_pages": 1 << pageblock_order,
        "NR_PAGEBLOCK_BITS": 4,
        "MIGRATETYPE_MASK": 7,
        "usage.pageblock_flags": 24,
        "sizeof.usage": 24 + -(-usage_bits // 64) * 8,
    }


FACTS = facts_of(max_order=4, pageblock_order=3)


# --- The allocator, page by page ---------------------------------------------------------


class Buddy:
    """The kernel's steps, with sets in place of its lists: they record membership, not order."""

    def __init__(self, facts: Mapping[str, int]) -> None:
        self.max_order = facts["MAX_PAGE_ORDER"]
        self.block = facts["pageblock_nr_pages"]
        self.section = facts["PAGES_PER_SECTION"]
        self.types: dict[int, int] = {}
        self.lists: dict[tuple[int, int], set[int]] = {}
        self.order: dict[int, int] = {}
        self.links: dict[int, str] = {}
        self.managed = 0

    def type_of(self, pfn: int) -> int:
        return self.types.get(pfn // self.block, UNMOVABLE)

    def free(self, pfn: int, order: int) -> None:
        """__free_pages_core() and down to split_large_buddy()."""
        self.managed += 1 << order
        step = min(1 << order, self.block)
        for part in range(pfn, pfn + (1 << order), step):
            self.free_one(part, step.bit_length() - 1, self.type_of(part))

    def free_one(self, pfn: int, order: int, migratetype: int) -> None:
        while order < self.max_order:
            buddy = pfn ^ 1 << order
            if self.order.get(buddy) != order:
                break
            buddy_type = migratetype
            if 1 << order >= self.block:
                buddy_type = self.type_of(buddy)
            self.lists[order, buddy_type].remove(buddy)
            self.links[buddy] = "poison"
            del self.order[buddy]
            pfn &= buddy
            order += 1
        self.order[pfn] = order
        self.links[pfn] = "listed"
        self.lists.setdefault((order, migratetype), set()).add(pfn)

    def free_range(self, start: int, end: int) -> None:
        """deferred_free_pages(): never more than up to the next block of the largest order."""
        most = 1 << self.max_order
        if end - start == most and start % most == 0:
            for pfn in range(start, end, self.block):
                self.types[pfn // self.block] = MOVABLE
            self.free(start, self.max_order)
            return
        for pfn in range(start, end):
            if pfn % self.block == 0:
                self.types[pfn // self.block] = MOVABLE
            self.free(pfn, 0)

    def maxorder(self, free: Sequence[Range], start: int) -> tuple[int, int]:
        """deferred_init_maxorder(): pages freed, and the next free page or ULONG_MAX."""
        most = 1 << self.max_order
        stop = (start // most + 1) * most
        here = [(max(a, start), min(b, stop)) for a, b in free if b > start and a < stop]
        for low, high in here:
            for pfn in range(low, high):
                self.links[pfn] = "self"
        for low, high in here:
            self.free_range(low, high)
        return sum(high - low for low, high in here), first_free(free, stop)

    def run(self, free: Sequence[Range], start: int, end: int) -> None:
        """deferred_init_memmap_chunk()."""
        pfn = first_free(free, start)
        while pfn < end:
            _, pfn = self.maxorder(free, pfn)

    def grow(self, free: Sequence[Range], start: int, order: int) -> int:
        """deferred_grow_zone(): first_deferred_pfn afterwards."""
        needed = -(-(1 << order) // self.section) * self.section
        pages = 0
        pfn = first_free(free, start)
        while pfn != ULONG_MAX:
            begun = pfn
            some, pfn = self.maxorder(free, begun)
            pages += some
            if begun ^ pfn >= self.section and pages >= needed:
                break
        return pfn

    def page(self, pfn: int, flags: int) -> bytes:
        """Bytes of the page's descriptor; the links of a listed page point to itself."""
        at = MAP + pfn * SIZE + 8
        links = POISON if self.links[pfn] == "poison" else (at, at)
        order = self.order.get(pfn)
        page_type = 0xFFFFFFFF if order is None else BUDDY
        return struct.pack("<5QQIIQ", flags, *links, 0, 0, order or 0, page_type, 0, 0)


def first_free(free: Sequence[Range], start: int) -> int:
    return next((max(a, start) for a, b in free if b > start), ULONG_MAX)


def node_of(*free: Range, **fields: int) -> DeferredNode:
    return replace(DeferredNode(1, SECTION, END, BASE, free), **fields)


def simulated(node: DeferredNode, facts: Mapping[str, int], sections: Sequence[int] = ()) -> Buddy:
    buddy = Buddy(facts)
    for section in sections or range(BASE // SECTION, END // SECTION):
        buddy.run(node.free, section * SECTION, (section + 1) * SECTION)
    return buddy


def held(first_pfn: int, nr_pages: int) -> NDArray[np.uint8]:
    """Something that names its page, so that a wrong one is seen."""
    pfns = np.arange(first_pfn, first_pfn + nr_pages, dtype=np.uint64)
    return np.repeat(pfns, SIZE // 8).view(np.uint8)


def image(node: DeferredNode, facts: Mapping[str, int], **bounds: int) -> bytes:
    chunks = image_chunks(node, facts, MAP, held, **bounds)
    return b"".join(chunk.tobytes() for chunk in chunks)


def image_of(buddy: Buddy, first: int = BASE, last: int = END) -> bytes:
    flags = 1 << 58 | 1 << 56 | 0xFFFF << 40
    return b"".join(
        buddy.page(pfn, flags) if pfn in buddy.links else held(pfn, 1).tobytes()
        for pfn in range(first, last)
    )


def assert_same(node: DeferredNode, facts: Mapping[str, int], buddy: Buddy) -> None:
    listed = {(pfn, order, kind) for (order, kind), pfns in buddy.lists.items() for pfn in pfns}
    assert blocks(node, facts).tolist() == sorted(listed)
    assert managed_pages(node) == buddy.managed
    counts = nr_free(node, facts)
    assert counts.shape == (facts["NR_PAGE_ORDERS"], facts["MIGRATE_TYPES"])
    assert {(o, t): n for (o, t), n in np.ndenumerate(counts) if n} == Counter(
        (order, kind) for _, order, kind in listed
    )
    areas = usage_bytes(node, facts)
    size = facts["sizeof.usage"]
    assert len(areas) == (END - BASE) // SECTION * size
    for pfn in range(BASE, END, facts["pageblock_nr_pages"]):
        area = areas[(pfn - BASE) // SECTION * size :][:size]
        assert area[:24] == bytes(24)
        bits = int.from_bytes(area[24:], "little")
        assert bits >> pfn % SECTION // facts["pageblock_nr_pages"] * 4 & 15 == buddy.type_of(pfn)
    assert image(node, facts) == image_of(buddy)


@st.composite
def ranges(draw: st.DrawFn) -> tuple[Range, ...]:
    """Free ranges, biased to where blocks end; now and then two of them touch."""
    edge = st.one_of(
        st.integers(BASE, END), st.integers(BASE // 16, END // 16).map(lambda block: block * 16)
    )
    edges = sorted(draw(st.sets(edge, max_size=14)))
    kinds = draw(st.lists(st.booleans(), min_size=len(edges), max_size=len(edges)))
    pieces = zip(edges, edges[1:], kinds, strict=False)
    return tuple((low, high) for low, high, kind in pieces if kind)


KERNELS = st.tuples(st.integers(1, 6), st.integers(0, 6)).map(
    lambda orders: facts_of(max(orders), min(orders))
)


@given(ranges(), KERNELS, st.permutations(range(BASE // SECTION, END // SECTION)))
def test_the_state_is_that_of_freeing_page_after_page(
    free: tuple[Range, ...], facts: Mapping[str, int], sections: list[int]
) -> None:
    """Whatever the order of sections: threads share them out as they like."""
    node = node_of(*free)
    assert_same(node, facts, simulated(node, facts, sections))


@given(ranges(), KERNELS, st.integers(0, 7))
def test_growing_frees_whole_sections_and_ends_in_the_same_state(
    free: tuple[Range, ...], facts: Mapping[str, int], order: int
) -> None:
    node = node_of(*free)
    buddy = Buddy(facts)
    first = buddy.grow(node.free, BASE, order)
    after = grown(node, order, facts)
    assert after.first_deferred_pfn == first
    assert_same(after.freed, facts, buddy)
    if first != ULONG_MAX:
        buddy.run(node.free, first, END)
    assert_same(node, facts, buddy)


@given(ranges(), st.integers(BASE - 40, END + 40), st.integers(0, 200))
def test_any_part_of_the_map_is_that_part_of_the_whole(
    free: tuple[Range, ...], first: int, nr_pages: int
) -> None:
    node = node_of(*free)
    whole = image_of(simulated(node, FACTS), first, first + nr_pages)
    assert image(node, FACTS, first=first, last=first + nr_pages) == whole


# --- Pictures ----------------------------------------------------------------------------


def picture(node: DeferredNode) -> Iterator[str]:
    """A line per block of 16: . not free, 0-4 head of that order, x poisoned, - plain."""
    pages = np.frombuffer(image(node, FACTS), "<u8").reshape(-1, SIZE // 8)
    free = {pfn for low, high in node.free for pfn in range(low, high)}
    for block in range(BASE, END, 16):
        yield "".join(
            "."
            if pfn not in free
            else str(page[5])
            if page[6] & 0xFFFFFFFF == BUDDY
            else "x"
            if page[1] == POISON[0]
            else "-"
            for pfn, page in zip(range(block, block + 16), pages[block - BASE :], strict=False)
        )


@pytest.mark.parametrize(
    ("free", "line", "types"),
    [
        pytest.param([(0, 16)], "4---------------", [1], id="whole"),
        pytest.param([(0, 15)], "3-x-x-x-2-x-1-0.", [1, 1, 1, 1], id="unaligned-end"),
        pytest.param([(1, 16)], ".01-2-x-3-x-x-x-", [0, 0, 0, 1], id="unaligned-start"),
        pytest.param([(5, 7)], ".....00.........", [0, 0], id="inside-of-a-pageblock"),
        pytest.param([(0, 3), (4, 9)], "1-0.2-x-0.......", [1, 1, 1, 1], id="two-ranges"),
        pytest.param([(0, 8), (8, 16)], "4-x-x-x-x-x-x-x-", [1], id="two-that-touch"),
        pytest.param([(8, 16)], "........3-x-x-x-", [1], id="second-pageblock"),
        pytest.param([(0, 1), (9, 10)], "0........0......", [1, 0], id="odd-and-alone"),
    ],
)
def test_a_block_looks_like(free: list[Range], line: str, types: list[int]) -> None:
    node = node_of(*((BASE + low, BASE + high) for low, high in free))
    assert next(picture(node)) == line
    assert blocks(node, FACTS)["migratetype"].tolist() == types


def test_a_whole_block_of_four_pageblocks_leaves_one_poisoned() -> None:
    facts = facts_of(max_order=4, pageblock_order=2)
    node = node_of((BASE, BASE + 16))
    pages = np.frombuffer(image(node, facts), "<u8").reshape(-1, SIZE // 8)
    assert np.flatnonzero(pages[:16, 1] == POISON[0]).tolist() == [8]


def test_a_node_without_free_pages_is_as_it_was() -> None:
    node = node_of()
    assert image(node, FACTS) == held(BASE, END - BASE).tobytes()
    assert len(blocks(node, FACTS)) == nr_free(node, FACTS).sum() == managed_pages(node) == 0


def test_nothing_is_deferred() -> None:
    node = node_of(first_deferred_pfn=ULONG_MAX)
    assert image(node, FACTS) == usage_bytes(node, FACTS) == b""
    assert grown(node, 0, FACTS).first_deferred_pfn == ULONG_MAX


def test_the_zone_is_the_last_of_the_node() -> None:
    low = node_of((BASE, END), zone=0)
    assert image(low, FACTS, last=BASE + 1)[7] == 1 << 2  # bits 58 and 56: node 1, zone 0
    assert image(node_of((BASE, END)), FACTS, last=BASE + 1)[7] == 1 << 2 | 1


def test_flags_have_no_last_cpu_where_the_kernel_keeps_none() -> None:
    facts = {name: value for name, value in FACTS.items() if "CPUPID" not in name}
    flags = image(node_of((BASE, END)), facts, last=BASE + 1)[:8]
    assert int.from_bytes(flags, "little") == 1 << 58 | 1 << 56


@pytest.mark.parametrize(
    ("free", "order", "freed", "first"),
    [
        ([(BASE, END)], 0, BASE + SECTION, BASE + SECTION),
        ([(BASE, END)], 7, BASE + 2 * SECTION, BASE + 2 * SECTION),
        ([(BASE + 3, END)], 0, BASE + 2 * SECTION, BASE + 2 * SECTION),  # 61 pages do not do
        ([(BASE, BASE + 64), (BASE + 70, END)], 0, BASE + 64, BASE + 70),  # not aligned
        ([(BASE, BASE + 64)], 0, BASE + 64, ULONG_MAX),
        ([(BASE, BASE + 2)], 4, BASE + 2, ULONG_MAX),
    ],
)
def test_growing_stops(free: list[Range], order: int, freed: int, first: int) -> None:
    node = node_of(*free)
    after = grown(node, order, FACTS)
    assert after.first_deferred_pfn == first
    assert after.freed.free == clipped(free, BASE, freed)


@pytest.mark.parametrize(
    ("free", "order", "first"),
    [
        ([(BASE, END)], 0, BASE + SECTION),
        ([(BASE + 3, END)], 0, BASE + 2 * SECTION),
        ([(BASE, BASE + 64), (BASE + 70, END)], 0, BASE + SECTION),  # not the next free page
        ([(BASE, BASE + 64)], 0, BASE + SECTION),  # though nothing is free from there on
        ([(BASE, BASE + 2)], 4, ULONG_MAX),
    ],
)
def test_growing_stops_at_a_section(free: list[Range], order: int, first: int) -> None:
    node = node_of(*free)
    after = grown(node, order, {**FACTS, "FREES_BY_RANGE": 1})
    assert after.first_deferred_pfn == first
    assert after.freed.free == clipped(free, BASE, first)


# --- Memblock ----------------------------------------------------------------------------


def test_free_ranges_hold_whole_pages_only() -> None:
    memory = [(0x1800, 0x9000), (0x9000, 0xC000), (0x20000, 0x21000)]
    reserved = [(0, 0x1900), (0x3FFF, 0x5001), (0xA000, 0xA000), (0x20800, 0x20801)]
    # The border at 0x9000 stays: regions of memory that touch are still two.
    assert free_ranges(memory, reserved, FACTS) == [(2, 3), (6, 9), (9, 10), (10, 12)]


@given(
    st.sets(st.integers(0, 60), max_size=8).map(sorted),
    st.sets(st.integers(0, 60), max_size=8).map(sorted),
)
def test_a_page_is_free_if_all_its_bytes_are_and_lie_in_one_region(
    memory_edges: list[int], reserved_edges: list[int]
) -> None:
    facts = {"PAGE_SIZE": 4}
    memory = list(zip(memory_edges[::2], memory_edges[1::2], strict=False))
    reserved = list(zip(reserved_edges[::2], reserved_edges[1::2], strict=False))
    expected = [
        pfn
        for pfn in range(16)
        if any(low <= 4 * pfn and 4 * pfn + 4 <= high for low, high in memory)
        and not any(low < 4 * pfn + 4 and 4 * pfn < high for low, high in reserved)
    ]
    found = free_ranges(memory, reserved, facts)
    assert [pfn for low, high in found for pfn in range(low, high)] == expected


@pytest.mark.parametrize("free", [[(BASE - 1, END)], [(BASE, END + 1)], [(BASE + 8, BASE)]])
def test_a_description_that_cannot_be_is_refused(free: list[Range]) -> None:
    with pytest.raises(ValueError, match="node 1: its free ranges"):
        node_of(*free)


def test_a_block_that_was_movable_before_stays_so_though_its_first_page_is_reserved() -> None:
    block = FACTS["pageblock_nr_pages"]
    free = ((2 * block + 1, 3 * block),)
    node = DeferredNode(0, 0, 4 * block, 2 * block, free)
    before = replace(node, movable=(2 * block,))
    types = {int(one) for one in blocks(node, FACTS)["migratetype"]}
    assert types == {FACTS["MIGRATE_UNMOVABLE"]}
    assert {int(one) for one in blocks(before, FACTS)["migratetype"]} == {FACTS["MIGRATE_MOVABLE"]}
    assert usage_bytes(node, FACTS) != usage_bytes(before, FACTS)
