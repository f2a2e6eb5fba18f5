# SPDX-License-Identifier: GPL-2.0-only
"""Nodes for the deferred-init experiment: what memory they have and what of it is reserved."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ream.experiment.section import PAGES_PER_SECTION
from ream.experiment.shape import PAGE_BYTES
from ream.oracle.memmap import Facts

from .buddy import DeferredNode, Range, clipped, free_ranges
from .rows import Layout

START_PFN = 1 << 20
"""First frame of node 0: 4 GiB, where ZONE_NORMAL begins."""

BLOCK_PAGES = 1024
"""Pages of the largest block; MAX_ORDER_NR_PAGES, include/linux/mmzone.h."""

PAGEBLOCK_PAGES = 512

PAGES_PER_HOLE = 4096
"""In the layout with holes, one reserved range in so many pages: about every 16 MiB."""

LAYOUT_SEED = 1
"""Seed of a row's random ranges: the same in every run."""


@dataclass(frozen=True)
class NodeLayout:
    """A node's memory, as memblock has it when the deferred initialisation begins.

    In frames: its span, and where what is deferred begins. memory, reserved: bytes, sorted, no
    two reserved ones touch; of memory that touches, memblock keeps apart what may go and what
    stays. The first section was initialised early, and nothing is said of it but early_blocks:
    first frame and order of what is free in it.
    """

    start_pfn: int
    first_deferred_pfn: int
    end_pfn: int
    memory: tuple[Range, ...]
    reserved: tuple[Range, ...]
    zone: str | None = None
    early_blocks: tuple[tuple[int, int], ...] = ()

    def node(self, nid: int, facts: Facts) -> DeferredNode:
        """What the oracle is told of it."""
        free = free_ranges(self.memory, self.reserved, facts)
        return DeferredNode(
            nid=nid,
            start_pfn=self.start_pfn,
            end_pfn=self.end_pfn,
            first_deferred_pfn=self.first_deferred_pfn,
            free=clipped(free, self.first_deferred_pfn, self.end_pfn),
            zone=facts[self.zone] if self.zone else None,
        )

    @property
    def map_end_pfn(self) -> int:
        """Up to the end of the last section there are descriptors."""
        return -(-self.end_pfn // PAGES_PER_SECTION) * PAGES_PER_SECTION


def make_nodes(
    nr_nodes: int, nr_pages: int, layout: Layout, *, seed: int = LAYOUT_SEED
) -> tuple[NodeLayout, ...]:
    """Nodes one behind the other, each with at most nr_pages frames behind its first section.

    nr_pages: at least two sections' worth, so that there is room for several ranges.
    """
    nodes: list[NodeLayout] = []
    for _ in range(nr_nodes):
        start = nodes[-1].map_end_pfn if nodes else START_PFN
        nodes.append(_make_node(start, nr_pages, layout, seed))
    return tuple(nodes)


def _make_node(start: int, nr_pages: int, layout: Layout, seed: int) -> NodeLayout:
    first = start + PAGES_PER_SECTION
    end = first + nr_pages
    draw = random.Random(f"{layout} {start} {nr_pages} {seed}")  # noqa: S311  (lots, no secrets)
    memory: tuple[Range, ...] = ((start * PAGE_BYTES, end * PAGE_BYTES),)
    reserved: tuple[Range, ...] = ()
    if layout == "unaligned":
        early = (start * PAGE_BYTES, (first - 1) * PAGE_BYTES)
        memory = (early, *_unaligned(first, end, draw))
        end = -(-memory[-1][1] // PAGE_BYTES)
    elif layout == "holes":
        reserved = tuple(_holes(first, end, draw))
    return NodeLayout(start, first, end, memory, reserved)


def _unaligned(first: int, end: int, draw: random.Random) -> Iterator[Range]:
    """Ranges with gaps between them, small ones and large; some begin or end within a page."""
    large = max(2 * BLOCK_PAGES, (end - first) // 4)
    at = first + draw.randrange(1, BLOCK_PAGES)
    while at < end - 1:
        nr_pages = draw.choice((draw.randrange(1, BLOCK_PAGES), draw.randrange(1, large)))
        to = min(at + nr_pages, end - draw.randrange(1, BLOCK_PAGES))
        if at < to:
            cut = draw.choice((0, 0, draw.randrange(1, PAGE_BYTES)))
            yield at * PAGE_BYTES + cut // 2, to * PAGE_BYTES - cut // 3
        at += nr_pages + draw.choice(
            (1, draw.randrange(1, BLOCK_PAGES), draw.randrange(1, large // 4))
        )


def _holes(first: int, end: int, draw: random.Random) -> Iterator[Range]:
    """Reserved ranges: pages, parts of blocks, whole blocks, and some that split a pageblock."""
    at = first
    while True:
        at += draw.randrange(1, 2 * PAGES_PER_HOLE)
        if draw.choice((True, False, False)):
            at = -(-at // PAGEBLOCK_PAGES) * PAGEBLOCK_PAGES  # its first page goes, the rest stays
        nr_pages = draw.choice((1, 1, 2, 3, 16, 100, 511, 512, 1024, draw.randrange(1, 3000)))
        if at + nr_pages >= end:
            return
        spare = draw.choice((0, 0, 64, 4000))  # of its last page: reserved all the same
        yield at * PAGE_BYTES, (at + nr_pages) * PAGE_BYTES - spare
        at += nr_pages


# --- Edges -----------------------------------------------------------------------------


def edge_nodes() -> Mapping[str, tuple[NodeLayout, ...]]:
    """Nodes that no lot is likely to draw, by name."""
    section = PAGES_PER_SECTION
    first = START_PFN + section
    first_of_dma32 = START_PFN // 4 + section
    a_page_in_each = [(first + at * section + 3 * BLOCK_PAGES + 5, 1) for at in range(3)]
    return {
        # What is initialised with the first of two ranges ends where the buddy of its last block
        # begins, which is of the second.
        "touching": (
            _edge(
                first, (0, 512), (512, 1280), (1280, 1288), (1288, 4 * BLOCK_PAGES - 3), pages=4096
            ),
        ),
        "zones-meet-in-a-block": _met(first, 2 * section + BLOCK_PAGES + PAGEBLOCK_PAGES),
        "dma32": (
            replace(_edge(first_of_dma32, (0, 2 * section), pages=2 * section), zone="ZONE_DMA32"),
        ),
        "movable": (
            replace(_edge(first, (0, section + 9), pages=2 * section), zone="ZONE_MOVABLE"),
        ),
        # Less than an allocation makes the zone grow by: then nothing is left.
        "less-than-a-section": (_edge(first, (7, 5 * BLOCK_PAGES + 3), pages=6 * BLOCK_PAGES),),
        # No section holds all that growing is to find.
        "a-page-reserved-in-each": (
            replace(
                _edge(first, (0, 4 * section), pages=4 * section),
                reserved=tuple(_bytes(pfn, pfn + nr) for pfn, nr in a_page_in_each),
            ),
        ),
        # Growing ends behind the first section: at the next one, or at what is free of it.
        "section-begins-reserved": (
            replace(
                _edge(first, (0, 2 * section), pages=2 * section),
                reserved=(_bytes(first + section, first + section + 5),),
            ),
        ),
        # A share of such a job is not whole blocks.
        "shares-of-odd-size": (_edge(first, (101, 12 * section - 7), pages=12 * section),),
    }


def small_node() -> tuple[NodeLayout, ...]:
    """Some MiB, with all that a range can begin and end with."""
    first = START_PFN + PAGES_PER_SECTION
    return (_edge(first, (3, 700), (705, 3 * BLOCK_PAGES + 77), pages=4 * BLOCK_PAGES),)


def _edge(first: int, *memory: Range, pages: int) -> NodeLayout:
    """A node of so many deferred pages; memory: in frames from the first of them on."""
    start = first - PAGES_PER_SECTION
    early = _bytes(start, first - 1)
    deferred = (_bytes(first + low, first + high) for low, high in memory)
    return NodeLayout(start, first, first + pages, (early, *deferred), ())


def _met(first: int, pages: int) -> tuple[NodeLayout, ...]:
    """Two nodes that meet within a block, whose other half is free already."""
    low = _edge(first, (0, pages), pages=pages)
    begin = -(-low.end_pfn // PAGES_PER_SECTION) * PAGES_PER_SECTION
    high = NodeLayout(
        low.end_pfn,
        begin,
        begin + PAGES_PER_SECTION,
        (_bytes(low.end_pfn, begin + PAGES_PER_SECTION),),
        (),
        early_blocks=((low.end_pfn, PAGEBLOCK_PAGES.bit_length() - 1),),
    )
    return low, high


def _bytes(low: int, high: int) -> Range:
    return low * PAGE_BYTES, high * PAGE_BYTES
