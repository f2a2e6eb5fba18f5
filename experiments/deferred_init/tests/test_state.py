# SPDX-License-Identifier: GPL-2.0-only
"""Judging a guest that stands: tried on a made-up kernel, small, in one piece of memory."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.deferred_init import buddy
from experiments.deferred_init import state as deferred_state
from experiments.deferred_init.buddy import DeferredNode
from experiments.deferred_init.state import (
    State,
    States,
    broken_blocks,
    check,
    check_freed,
    taken_pages,
)
from experiments.deferred_init.zones import Layout, Node, Zones, read_symbols
from ream.errors import ReamError, VerificationFailed
from ream.stage.guest import Guest

SIZE, SECTION, START, FIRST, END = 64, 64, 32, 64, 320
MEMORY = 0xFFFF888000000000
NR_BYTES = 0x20000

FREE = ((64, 101), (104, 111), (128, 256), (257, 320))
"""Several ranges, of which some begin or end where no block does; the rest is reserved."""

WORDS = (
    *("node_data", "nr_node_ids", "nr_cpu_ids", "vmemmap_base", "mem_section"),
    *("memblock", "__per_cpu_offset"),
)
SYMBOLS = {name: MEMORY + 0x200 * number for number, name in enumerate(WORDS, 1)}
PGDAT, REGIONS, ROOT, USAGE, CPUS, MAP = (
    MEMORY + place for place in (0x2000, 0x3000, 0x4000, 0x5000, 0x6000, 0x8000)
)
SYMBOLS["vm_event_states"] = 0x80  # a per-CPU variable: as a per-CPU pointer
PER_CPU = 0x40
"""A per-CPU pointer: an offset from where a CPU has its own."""

FACTS: Mapping[str, int] = {
    "sizeof.page": SIZE,
    "page.flags": 0,
    "page.lru": 8,
    "page.private": 40,
    "page.page_type": 48,
    "page._refcount": 52,
    "PGTY_buddy": 0xF0000000,
    "list_head.next": 0,
    "list_head.prev": 8,
    "sizeof.list_head": 16,
    "NODES_PGSHIFT": 58,
    "ZONES_PGSHIFT": 56,
    "ZONE_NORMAL": 1,
    "LIST_POISON1": 0xDEAD000000000100,
    "LIST_POISON2": 0xDEAD000000000122,
    "MAX_PAGE_ORDER": 4,
    "NR_PAGE_ORDERS": 5,
    "MIGRATE_TYPES": 5,
    "pageblock_nr_pages": 8,
    "MIGRATE_UNMOVABLE": 0,
    "MIGRATE_MOVABLE": 1,
    "NR_PAGEBLOCK_BITS": 4,
    "FREES_BY_RANGE": 0,
    "MIGRATETYPE_MASK": 7,
    "PAGE_SIZE": 4096,
    "PAGES_PER_SECTION": SECTION,
    "SECTIONS_PER_ROOT": 4,
    "usage.pageblock_flags": 24,
    "sizeof.usage": 32,
    "sizeof.mem_section": 16,
    "mem_section.usage": 8,
    "sizeof.zone": 1024,
    "zone.zone_start_pfn": 0,
    "zone.spanned_pages": 8,
    "zone.managed_pages": 16,
    "zone.lock": 24,
    "zone.vm_stat": 32,
    "NR_FREE_PAGES": 1,
    "zone.per_cpu_zonestats": 64,
    "zone.per_cpu_pageset": 72,
    "zone.free_area": 128,
    "per_cpu_zonestat.vm_stat_diff": 2,
    "per_cpu_pages.lists": 16,
    "NR_PCP_LISTS": 4,
    "NR_LOWORDER_PCP_LISTS": 4,
    "MIGRATE_PCPTYPES": 2,
    "THREAD_SIZE": 4 * 4096,
    "vm_event_state.event": 8,
    "PGFREE": 3,
    "sizeof.free_area": 88,
    "free_area.free_list": 0,
    "free_area.nr_free": 80,
    "pglist_data.node_zones": 0,
    "pglist_data.nr_zones": 2048,
    "pglist_data.first_deferred_pfn": 2056,
    "memblock.memory": 16,
    "memblock.reserved": 56,
    "memblock_type.cnt": 0,
    "memblock_type.regions": 24,
    "sizeof.memblock_region": 24,
    "memblock_region.base": 0,
    "memblock_region.size": 8,
    "memblock_region.flags": 16,
    "memblock_region.nid": 20,
    "MEMBLOCK_NOMAP": 4,
    "MEMBLOCK_DRIVER_MANAGED": 8,
}

ZONE = PGDAT + FACTS["sizeof.zone"]
LISTS = ZONE + FACTS["zone.free_area"]


class MadeUp:
    """A guest with one node of two zones, before its deferred pages are initialised."""

    def __init__(self, free: tuple[tuple[int, int], ...] = FREE) -> None:
        self.octets = np.zeros(NR_BYTES, np.uint8)
        self.put(SYMBOLS["node_data"], PGDAT)
        self.put(SYMBOLS["nr_node_ids"], 1)
        self.put(SYMBOLS["nr_cpu_ids"], 2)
        self.put(SYMBOLS["vmemmap_base"], MAP)
        self.put(SYMBOLS["mem_section"], ROOT)
        self.put(PGDAT + 2048, 2)
        self.put(PGDAT + 2056, FIRST)
        for offset, value in ((0, START), (8, END - START), (16, 7)):
            self.put(ZONE + offset, value)
        self.put(ZONE + FACTS["zone.per_cpu_zonestats"], PER_CPU)
        self.put(ZONE + FACTS["zone.per_cpu_pageset"], PER_CPU + 0x100)
        for cpu in range(2):
            self.put(SYMBOLS["__per_cpu_offset"] + cpu * 8, CPUS + cpu * 0x800)
            for number in range(FACTS["NR_PCP_LISTS"]):
                head = self.cpu_list(cpu, number)
                self.link([head])
        for number in range(END // SECTION):
            root = ROOT + 0x100 + number // 4 * 0x100
            self.put(ROOT + number // 4 * 8, root)
            self.put(root + number % 4 * 16 + 8, USAGE + number * FACTS["sizeof.usage"])
        self._memblock(free)
        self.page(FIRST - 1, flags=0x1234)
        for pfn in range(FIRST, END):
            self.page(pfn, flags=1 << 13, count=pfn)

    def _memblock(self, free: tuple[tuple[int, int], ...]) -> None:
        edges = [0, *(pfn for part in free for pfn in part), END]
        reserved = list(zip(edges[::2], edges[1::2], strict=True))
        kinds = {16: [(0, 200), (200, END)], 56: [part for part in reserved if part[0] < part[1]]}
        at = REGIONS
        for kind, ranges in kinds.items():
            self.put(SYMBOLS["memblock"] + kind, len(ranges))
            self.put(SYMBOLS["memblock"] + kind + 24, at)
            for low, high in ranges:
                self.put(at, low * 4096)
                self.put(at + 8, (high - low) * 4096)
                at += 24

    # --- Memory ----------------------------------------------------------------------

    @contextmanager
    def memory(self, address: int, nr_bytes: int) -> Iterator[NDArray[np.uint8]]:
        assert address % 4096 == nr_bytes % 4096 == 0
        yield self.octets[address - MEMORY :][:nr_bytes].copy()

    def put(self, address: int, value: int, nr_bytes: int = 8) -> None:
        at = address - MEMORY
        self.octets[at : at + nr_bytes] = np.frombuffer(value.to_bytes(nr_bytes, "little"), "u1")

    def word(self, address: int) -> int:
        return int.from_bytes(self.octets[address - MEMORY :][:8].tobytes(), "little")

    def page(self, pfn: int, **fields: int) -> None:
        at = MAP + pfn * SIZE
        places = {"flags": (0, 8), "next": (8, 8), "prev": (16, 8), "private": (40, 8)}
        places |= {"page_type": (48, 4), "count": (52, 4)}
        for name, value in fields.items():
            offset, nr_bytes = places[name]
            self.put(at + offset, value, nr_bytes)

    def link(self, addresses: list[int]) -> None:
        """A list of these, of which the first is its head."""
        for here, after in zip(addresses, [*addresses[1:], addresses[0]], strict=True):
            self.put(here, after)
            self.put(after + 8, here)

    @staticmethod
    def lru(pfn: int) -> int:
        return MAP + pfn * SIZE + 8

    @staticmethod
    def cpu_list(cpu: int, number: int) -> int:
        return CPUS + cpu * 0x800 + PER_CPU + 0x100 + 16 + number * 16

    # --- What initialisation leaves --------------------------------------------------

    def initialise(self, node: DeferredNode, blocks: list[tuple[int, int, int]]) -> None:
        """Everything as it must be, with these blocks on the lists, in any order."""
        chunks = buddy.image_chunks(node, FACTS, MAP, self._held)
        image = np.concatenate([chunk.copy() for chunk in chunks])
        self.octets[MAP + FIRST * SIZE - MEMORY :][: len(image)] = image
        usage = buddy.usage_bytes(node, FACTS)
        at = USAGE + FIRST // SECTION * FACTS["sizeof.usage"] - MEMORY
        self.octets[at : at + len(usage)] = np.frombuffer(usage, np.uint8)
        self.put(ZONE + FACTS["zone.managed_pages"], 7 + buddy.managed_pages(node))
        self.list_blocks(blocks)

    def list_blocks(self, blocks: list[tuple[int, int, int]]) -> None:
        shuffled = random.Random(7).sample(blocks, len(blocks))
        for pfn, order, _ in blocks:
            self.page(pfn, page_type=FACTS["PGTY_buddy"], private=order)
        for order in range(FACTS["NR_PAGE_ORDERS"]):
            area = LISTS + order * FACTS["sizeof.free_area"]
            for kind in range(FACTS["MIGRATE_TYPES"]):
                its = [self.lru(pfn) for pfn, o, t in shuffled if (o, t) == (order, kind)]
                self.link([area + kind * 16, *its])
            self.put(area + 80, sum(o == order for _, o, _ in blocks))
        nr_free = sum(1 << order for _, order, _ in blocks)
        # Of which one CPU has not told of 5 freed, another one of 3 allocated.
        self.put(ZONE + FACTS["zone.vm_stat"] + 8, nr_free - 5 + 3)
        for cpu, diff in enumerate((5, 256 - 3)):
            self.put(CPUS + cpu * 0x800 + PER_CPU + 2 + 1, diff, 1)

    def _held(self, first: int, nr: int) -> NDArray[np.uint8]:
        return self.octets[MAP + first * SIZE - MEMORY :][: nr * SIZE].copy()


Blocks = list[tuple[int, int, int]]
EARLY: Blocks = [(START, 2, 1), (48, 4, 0)]


@pytest.fixture
def made() -> MadeUp:
    return MadeUp()


def zones_of(made: MadeUp) -> Zones:
    return Zones(cast(Guest, made), Layout(SYMBOLS, FACTS))


def initialised(made: MadeUp, change: Callable[[Blocks], Blocks] = list) -> tuple[Zones, Node]:
    """The guest afterwards; change: of the blocks that are on its lists."""
    zones = zones_of(made)
    [node] = zones.deferred_nodes()
    blocks: Any = buddy.blocks(node.deferred, FACTS).tolist()
    made.initialise(node.deferred, [*EARLY, *change(blocks)])
    return zones, node


def test_a_node_is_found_with_what_is_free_of_it(made: MadeUp) -> None:
    [node] = zones_of(made).deferred_nodes()
    # memblock hands out no range over the border of two regions.
    free = (*FREE[:2], (128, 200), (200, 256), FREE[3])
    assert node.deferred == DeferredNode(0, START, END, FIRST, free, zone=1)
    assert (node.zone, node.managed_pages) == (ZONE, 7)
    assert [part[:2] for part in node.held] == [(101, 104), (111, 128), (256, 257)]


def test_a_node_with_nothing_deferred_is_none(made: MadeUp) -> None:
    made.put(PGDAT + 2056, buddy.ULONG_MAX)
    assert zones_of(made).deferred_nodes() == ()


def test_what_is_as_predicted_passes_with_lists_in_any_order(made: MadeUp) -> None:
    state = check(*initialised(made))
    assert state.nr_pages == sum(high - low for low, high in FREE)
    assert state.taken == ()
    assert state.digest == check(*initialised(MadeUp())).digest


def test_pages_that_are_reserved_are_in_no_digest(made: MadeUp) -> None:
    other = MadeUp()
    other.page(105 - 3, flags=0x42)
    assert check(*initialised(made)).digest == check(*initialised(other)).digest


@pytest.mark.parametrize("free", [((64, 320),), ((65, 66),), ((64, 65), (319, 320))])
def test_other_ranges_pass(free: tuple[tuple[int, int], ...]) -> None:
    assert check(*initialised(MadeUp(free))).nr_pages == sum(high - low for low, high in free)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda m: m.page(130, count=1), r"byte 52 .* pfn 0x82, which was to be freed, is 0x01"),
        (lambda m: m.page(102, flags=3), r"pfn 0x66, which was not to be touched"),
        (lambda m: m.page(319, private=9), r"byte 40 .*pfn 0x13f"),
        (lambda m: m.page(130, next=1), r"byte 8 .*pfn 0x82"),
        (lambda m: m.put(MAP + 200 * SIZE + 60, 1, 4), "byte 60 .*pfn 0xc8"),
        (lambda m: m.put(ZONE + 16, 9), "managed_pages has grown by 2, 235 pages"),
        (lambda m: m.put(ZONE + 40, 0), "NR_FREE_PAGES is 2, 255 pages are on the free lists"),
        (lambda m: m.put(LISTS + 88 * 4 + 80, 3), "nr_free of order 4 is 3, on its lists are"),
        (lambda m: m.put(USAGE + 2 * 32 + 24, 0x11), "section at pfn 0x80 are of other types"),
        (lambda m: m.page(128, private=3), "pfn 0x80, on the list of order 4: its order is 3"),
        (lambda m: m.page(128, page_type=0xFFFFFFFF), "leads to .*where no free block begins"),
        (lambda m: m.page(128, prev=m.lru(48)), "pfn 0x80: its list leads back to"),
        (lambda m: m.page(128, next=m.lru(128)), "leads back to|has no end"),
        (lambda m: m.put(LISTS + 88 * 4 + 16 + 8, m.lru(48)), "does not lead back to its end"),
        (lambda m: m.link([LISTS + 88 * 4 + 16]), "nr_free of order 4"),
    ],
)
def test_what_is_not_as_predicted_is_named(
    made: MadeUp, spoil: Callable[[MadeUp], None], words: str
) -> None:
    zones, node = initialised(made)
    spoil(made)
    with pytest.raises(VerificationFailed, match=words):
        check(zones, node)


def test_a_free_block_that_is_on_no_list_is_seen(made: MadeUp) -> None:
    zones, node = initialised(made)
    made.page(50, page_type=FACTS["PGTY_buddy"])
    with pytest.raises(VerificationFailed, match="1 free block on no list"):
        check(zones, node)


def without(*gone: tuple[int, int, int]) -> Callable[[Blocks], Blocks]:
    """The first of these is not there, the rest are there in its place."""
    return lambda blocks: [*(block for block in blocks if block != gone[0]), *gone[1:]]


BROKEN = without((144, 4, 1), (146, 1, 1), (148, 2, 1), (152, 3, 1))
"""Frames 144 and 145 have been allocated."""


def took(made: MadeUp) -> tuple[Zones, Node]:
    zones, node = initialised(made, BROKEN)
    made.page(144, page_type=0xFFFFFFFF, next=0xDEAD000000000100, count=1)
    made.page(145, count=0)
    made.link([made.cpu_list(1, 1), made.lru(145)])
    return zones, node


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda m: m.page(147, private=1), "byte 40 .*pfn 0x93"),
        (lambda m: m.page(150, count=1), "byte 52 .*pfn 0x96"),
        (lambda m: m.page(157, flags=3), "byte 0 .*pfn 0x9d"),
        (lambda m: m.page(157, next=0xDEAD000000000100), "byte 8 .*pfn 0x9d"),
        (lambda m: m.put(MAP + 148 * SIZE + 60, 1, 4), "byte 60 .*pfn 0x94"),
    ],
)
def test_what_is_left_of_a_block_is_as_predicted_too(
    made: MadeUp, spoil: Callable[[MadeUp], None], words: str
) -> None:
    zones, node = took(made)
    spoil(made)
    with pytest.raises(VerificationFailed, match=words):
        check(zones, node)


def test_a_part_of_a_broken_block_may_have_merged_again(made: MadeUp) -> None:
    other = MadeUp()
    zones, node = took(made)
    made.page(157, next=FACTS["LIST_POISON1"], prev=FACTS["LIST_POISON2"])
    assert check(zones, node).digest == check(*took(other)).digest


def test_parts_that_could_merge_must_have(made: MadeUp) -> None:
    gone = without((144, 4, 1), (146, 1, 1), (148, 1, 1), (150, 1, 1), (152, 3, 1))
    zones, node = initialised(made, gone)
    made.page(144, page_type=0xFFFFFFFF, next=0xDEAD000000000100, count=1)
    made.page(145, next=MAP + 144 * SIZE + 1)
    with pytest.raises(VerificationFailed, match="3 should be left, 4 are; at pfn 0x94"):
        check(zones, node)


def test_fewer_pages_counted_than_freed_are_seen(made: MadeUp) -> None:
    zones, node = initialised(made)
    nr_freed = zones.nr_freed()
    for cpu, nr in enumerate((100, 135)):
        made.put(CPUS + cpu * 0x800 + SYMBOLS["vm_event_states"] + 8 + 3 * 8, nr)
    check_freed(zones, [node], nr_freed)
    with pytest.raises(VerificationFailed, match="PGFREE has grown by 234, 235 pages"):
        check_freed(zones, [node], nr_freed + 1)


def test_pages_that_somebody_took_are_told_and_pass(made: MadeUp) -> None:
    state = check(*took(made))
    assert state.taken == (144, 145)
    assert state.digest != check(*initialised(MadeUp())).digest


def test_a_tail_of_a_page_in_use_is_in_use(made: MadeUp) -> None:
    zones, node = took(made)
    made.link([made.cpu_list(1, 1)])
    made.page(145, next=MAP + 144 * SIZE + 1)
    assert check(zones, node).taken == (144, 145)


def test_all_pages_of_a_block_on_a_list_of_a_cpu_are_accounted_for(made: MadeUp) -> None:
    zones, node = initialised(made, BROKEN)
    made.page(144, page_type=0xFFFFFFFF, next=0xDEAD000000000100)
    made.link([made.cpu_list(1, 3), made.lru(144)])
    assert check(zones, node).taken == (144, 145)


def stack(made: MadeUp) -> tuple[Zones, Node]:
    """Four pages from 144 on, of which the first has a reference."""
    zones, node = initialised(made, without((144, 4, 1), (148, 2, 1), (152, 3, 1)))
    made.page(144, page_type=0xFFFFFFFF, next=0xDEAD000000000100, count=1)
    return zones, node


def test_a_stack_is_in_use_of_which_only_the_first_page_has_a_reference(made: MadeUp) -> None:
    assert check(*stack(made)).taken == (144, 145, 146, 147)


@pytest.mark.parametrize(
    ("spoil", "nr_lost"),
    [
        pytest.param(lambda m: m.page(144, count=2), 3, id="of-two-owners"),
        pytest.param(lambda m: m.page(144, next=m.lru(144)), 4, id="it-was-never-freed"),
        pytest.param(lambda m: m.page(146, count=1), 3, id="with-another-in-it"),
        pytest.param(lambda m: m.link([m.cpu_list(0, 1), m.lru(147)]), 2, id="with-a-free-one"),
    ],
)
def test_what_is_no_stack_is_lost(
    made: MadeUp, spoil: Callable[[MadeUp], None], nr_lost: int
) -> None:
    zones, node = stack(made)
    spoil(made)
    with pytest.raises(VerificationFailed, match=f"{nr_lost} pages neither free nor in use"):
        check(zones, node)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda m: m.page(144, count=0), id="nobody-has-it"),
        pytest.param(lambda m: m.page(144, next=m.lru(144)), id="it-was-never-freed"),
        pytest.param(lambda m: m.link([m.cpu_list(1, 1)]), id="no-cpu-has-it"),
    ],
)
def test_a_page_that_is_lost_is_seen(made: MadeUp, spoil: Callable[[MadeUp], None]) -> None:
    zones, node = took(made)
    spoil(made)
    with pytest.raises(VerificationFailed, match="1 page neither free nor in use"):
        check(zones, node)


def test_more_than_anybody_can_take_is_too_much(
    made: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred_state, "MOST_TAKEN", 1)
    with pytest.raises(VerificationFailed, match="2 pages are not free, the first at pfn 0x90"):
        check(*took(made))


def test_a_block_of_another_type_is_no_part_of_what_was_predicted(made: MadeUp) -> None:
    zones, node = initialised(made, without((144, 4, 1), (144, 4, 0)))
    with pytest.raises(VerificationFailed, match="too many, .*order 4 and type 0 .*0x90"):
        check(zones, node)


def blocks_of(*blocks: tuple[int, int, int]) -> NDArray[Any]:
    return np.array(list(blocks), buddy.block_dtype())


def test_a_block_that_reaches_out_of_a_broken_one_is_none_of_its_parts() -> None:
    predicted = blocks_of((0, 2, 1), (4, 2, 1))
    with pytest.raises(VerificationFailed, match="1 free block too many.*2 that should be"):
        broken_blocks(0, predicted, blocks_of((0, 3, 1)))
    with pytest.raises(VerificationFailed, match="1 free block too many"):
        broken_blocks(0, blocks_of(), blocks_of((0, 3, 1)))


def test_taken_pages_are_what_is_left_of_broken_blocks() -> None:
    found = blocks_of((2, 0, 1), (8, 3, 1))
    broken = broken_blocks(0, blocks_of((0, 2, 1), (8, 3, 1)), found)
    assert broken["pfn"].tolist() == [0]
    assert taken_pages(broken, found).tolist() == [0, 1, 3]
    assert taken_pages(broken, blocks_of()).tolist() == [0, 1, 2, 3]


def test_states_of_the_same_memory_must_be_the_same() -> None:
    node = DeferredNode(0, START, END, FIRST, FREE)
    states = States()
    states.check("before", [State(node, "aa", 9)])
    states.check("ream", [State(node, "aa", 9)])
    states.check("other memory", [State(replace(node, free=FREE[:1]), "bb", 9)])
    with pytest.raises(VerificationFailed, match="not the same with published and before"):
        states.check("published", [State(node, "bb", 9)])


def test_a_zone_whose_lock_is_held_is_not_at_rest(made: MadeUp) -> None:
    zones, node = initialised(made)
    assert zones.at_rest(node)
    made.put(ZONE + FACTS["zone.lock"], 1, 4)
    assert not zones.at_rest(node)


def test_a_symbol_that_a_kernel_lacks_is_named(made: MadeUp, tmp_path: Any) -> None:
    zones = Zones(cast(Guest, made), Layout({}, FACTS))
    with pytest.raises(ReamError, match="no symbol nr_node_ids"):
        zones.deferred_nodes()
    listing = tmp_path / "System.map"
    listing.write_text("ffffffff81000000 T _text\nffffffff81a8b260 T files_maxfiles_init\n")
    assert read_symbols(listing)["files_maxfiles_init"] == 0xFFFFFFFF81A8B260
    listing.write_text("what is this\n")
    with pytest.raises(ReamError, match=r"System\.map: "):
        read_symbols(listing)
