# SPDX-License-Identifier: GPL-2.0-only
"""Nodes for the deferred-init experiment: what memory they have and what of it is reserved."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from ream.experiment.deferred_init import Layout
from ream.experiment.section import PAGES_PER_SECTION
from ream.experiment.shape import PAGE_BYTES
from ream.oracle.buddy import DeferredNode, Range, clipped, free_ranges
from ream.oracle.memmap import Facts

START_PFN = 1 << 20
"""First frame of node 0: 4 GiB, where ZONE_NORMAL begins."""

BLOCK_PAGES = 1024
"""Pages of the largest block; MAX_ORDER_NR_PAGES, include/linux/mmzone.h."""

PAGEBLOCK_PAGES = 512

PAGES_PER_HOLE = 4096
"""In the layout with holes, one reserved range in so many pages: about every 16 MiB."""

LAYOUT_SEED = 1
"""Of a row's ranges: the same in every run."""


@dataclass(frozen=True)
class NodeLayout:
    """A node's memory, as memblock has it when the deferred initialisation begins.

    In frames: its span, and where what is deferred begins. memory, reserved: bytes, sorted, no
    two of them touch. The first section was initialised early, and nothing is said of it.
    """

    start_pfn: int
    first_deferred_pfn: int
    end_pfn: int
    memory: tuple[Range, ...]
    reserved: tuple[Range, ...]

    def node(self, nid: int, facts: Facts) -> DeferredNode:
        """What the oracle is told of it."""
        free = free_ranges(self.memory, self.reserved, facts)
        return DeferredNode(
            nid=nid,
            start_pfn=self.start_pfn,
            end_pfn=self.end_pfn,
            first_deferred_pfn=self.first_deferred_pfn,
            free=clipped(free, self.first_deferred_pfn, self.end_pfn),
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
