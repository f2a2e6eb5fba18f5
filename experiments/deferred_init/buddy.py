# SPDX-License-Identifier: GPL-2.0-only
"""What deferred initialisation must leave: the free blocks of a node and every descriptor's bytes.

Written from the rules of Linux 6.12 (each names its place in that tree), not by freeing pages one
after the other: the rules make the state depend on what is free, never on who freed it when.
Frame numbers and constants are as in memmap.py; the facts are those of facts.h and buddy_facts.h.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ream.oracle.memmap import CHUNK_BYTES, Facts, descriptor_dtype, page_links, usage_areas

Range = tuple[int, int]
"""First and one past the last."""

ULONG_MAX = (1 << 64) - 1
"""first_deferred_pfn of a node that has nothing deferred, or no more."""


def block_dtype() -> np.dtype[Any]:
    """A block on a free list: its first frame, its order, and the list's type."""
    return np.dtype([("pfn", "<u8"), ("order", "u1"), ("migratetype", "u1")])


# --- What is free ----------------------------------------------------------------------


@dataclass(frozen=True)
class DeferredNode:
    """The last zone of a node, whose pages are initialised late; all in frame numbers.

    start_pfn, end_pfn: the zone's span. first_deferred_pfn: what is deferred begins there.
    free: the ranges of memory from there to end_pfn that nobody reserved, sorted and disjoint.
    Two of them may touch: then they are freed one after the other, as memblock hands them out.
    zone: its index in node_zones; None: ZONE_NORMAL. movable: the pageblocks that are
    MIGRATE_MOVABLE before, by their first frame: of newer kernels those that begin with a
    reserved page.
    """

    nid: int
    start_pfn: int
    end_pfn: int
    first_deferred_pfn: int
    free: tuple[Range, ...]
    zone: int | None = None
    movable: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        bounds = [self.first_deferred_pfn, *(pfn for pair in self.free for pfn in pair)]
        in_order = all(low <= high for low, high in pairwise(bounds))
        if not in_order or (self.free and bounds[-1] > self.end_pfn):
            raise ValueError(
                f"node {self.nid}: its free ranges are not sorted within "
                f"[{self.first_deferred_pfn}, {self.end_pfn}): use clipped(free_ranges(...))"
            )

    def zone_index(self, facts: Facts) -> int:
        return facts["ZONE_NORMAL"] if self.zone is None else self.zone


def free_ranges(memory: Iterable[Range], reserved: Iterable[Range], facts: Facts) -> list[Range]:
    """Whole free pages of memblock, as frame numbers.

    memory, reserved: bytes, each sorted and disjoint, as memblock keeps them; of memory only the
    regions of the node, and none that is set apart (NOMAP, DRIVER_MANAGED). A range never reaches
    over a border of two memory regions, even if they touch.
    Source: __next_mem_range() and __next_mem_pfn_range_in_zone(), mm/memblock.c.
    """
    taken = list(reserved)
    found: list[Range] = []
    at = 0
    for start, end in memory:
        while at < len(taken) and taken[at][1] <= start:
            at += 1
        free_from = start
        for low, high in islice(taken, at, None):
            if low >= end:
                break
            found += _whole_pages(free_from, low, facts["PAGE_SIZE"])
            free_from = high
        found += _whole_pages(free_from, end, facts["PAGE_SIZE"])
    return found


def _whole_pages(start: int, end: int, page_size: int) -> list[Range]:
    first, last = -(-start // page_size), end // page_size
    return [(first, last)] if first < last else []


def clipped(ranges: Iterable[Range], start: int, end: int) -> tuple[Range, ...]:
    """The parts of ranges within [start, end)."""
    parts = ((max(low, start), min(high, end)) for low, high in ranges)
    return tuple((low, high) for low, high in parts if low < high)


@dataclass(frozen=True)
class Grown:
    """A node after deferred_grow_zone(): `freed` describes what is free by then, and no more.

    first_deferred_pfn: as the node holds it then; ULONG_MAX if nothing is left. The threads
    start there later, and the state after them is that of the whole node, grown or not.
    """

    freed: DeferredNode
    first_deferred_pfn: int


def grown(node: DeferredNode, order: int, facts: Facts) -> Grown:
    """What an allocation of 2^order pages gets initialised before the threads run.

    All free pages of whole sections, until they are as many as asked for, rounded up to a
    section. It stops where the next free page lies in another section, so the node's
    first_deferred_pfn is that page, not the section; in kernels since 6.18 it is the section that
    comes next, free or not, as long as the zone has one.
    Source: deferred_grow_zone(), mm/mm_init.c.
    """
    per_section = facts["PAGES_PER_SECTION"]
    needed = -(-(1 << order) // per_section) * per_section
    if facts["FREES_BY_RANGE"]:
        return _grown_by_sections(node, needed, per_section)
    pages = 0
    section = 0
    until = ULONG_MAX
    for start, end in _section_pieces(node.free, per_section):
        if pages >= needed and start // per_section != section:
            until = start
            break
        pages += end - start
        section = start // per_section
    return Grown(replace(node, free=clipped(node.free, node.first_deferred_pfn, until)), until)


def _grown_by_sections(node: DeferredNode, needed: int, per_section: int) -> Grown:
    at, pages = node.first_deferred_pfn, 0
    while pages < needed and at < node.end_pfn:
        end = (at // per_section + 1) * per_section
        pages += sum(high - low for low, high in clipped(node.free, at, end))
        at = end
    until = at if at < node.end_pfn else ULONG_MAX
    return Grown(replace(node, free=clipped(node.free, node.first_deferred_pfn, at)), until)


def _section_pieces(ranges: Iterable[Range], per_section: int) -> Iterator[Range]:
    for low, high in ranges:
        for start in range(low // per_section * per_section, high, per_section):
            yield max(low, start), min(high, start + per_section)


# --- Blocks ----------------------------------------------------------------------------


def managed_pages(node: DeferredNode) -> int:
    """Pages that the zone's managed_pages and its NR_FREE_PAGES grow by.

    Source: __free_pages_core() and account_freepages(), mm/page_alloc.c.
    """
    return sum(end - start for start, end in node.free)


def blocks(node: DeferredNode, facts: Facts) -> NDArray[Any]:
    """The blocks on the free lists, by frame number: dtype block_dtype().

    Free buddies are merged up to MAX_PAGE_ORDER, so the blocks are the largest aligned ones.
    Pageblocks merge whatever their types, for those here are mergeable, and no block is larger
    than a pageblock unless each of its pageblocks is wholly free.
    Source: __free_one_page(), mm/page_alloc.c.
    """
    joined = _joined(_array(node.free))
    pfns, orders = _largest_aligned(joined, facts["MAX_PAGE_ORDER"])
    made = np.zeros(len(pfns), block_dtype())
    made["pfn"], made["order"] = pfns, orders
    block = facts["pageblock_nr_pages"]
    first = pfns // block * block
    movable = _contained(first, joined) | np.isin(first, node.movable)
    made["migratetype"] = np.where(movable, facts["MIGRATE_MOVABLE"], facts["MIGRATE_UNMOVABLE"])
    return made


def nr_free(node: DeferredNode, facts: Facts) -> NDArray[np.int64]:
    """Blocks on each free list: shape (NR_PAGE_ORDERS, MIGRATE_TYPES)."""
    counts = np.zeros((facts["NR_PAGE_ORDERS"], facts["MIGRATE_TYPES"]), np.int64)
    listed = blocks(node, facts)
    np.add.at(counts, (listed["order"], listed["migratetype"]), 1)
    return counts


def usage_bytes(node: DeferredNode, facts: Facts) -> bytes:
    """The usage areas of the sections from first_deferred_pfn to end_pfn, one after the other.

    A pageblock becomes MIGRATE_MOVABLE with its first page, if that is freed. Any other keeps
    what it has had: 0, MIGRATE_UNMOVABLE, since its section was made, unless a reserved page has
    made it movable. A section that is not there is all 0. Mobility grouping is on: it goes off
    only where memory is a few pageblocks.
    Source: deferred_free_pages(), init_reserved_page(), mm/mm_init.c; of 7.3 the latter sets
    a type: __init_deferred_page() there.
    """
    free = _array(node.free)
    block = facts["pageblock_nr_pages"]
    first = -(-free[:, 0] // block)
    movable = _concatenated_ranges(first, -(-free[:, 1] // block)) * block
    if node.first_deferred_pfn >= node.end_pfn:
        return b""
    return usage_areas(
        [*movable.tolist(), *node.movable], node.first_deferred_pfn, node.end_pfn, facts
    )


def _array(ranges: Sequence[Range]) -> NDArray[np.int64]:
    return np.array(ranges, np.int64).reshape(-1, 2)


def _joined(ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same pages with no two ranges that touch."""
    starts, ends = ranges[:, 0], ranges[:, 1]
    return np.stack((np.setdiff1d(starts, ends), np.setdiff1d(ends, starts)), axis=1)


def _contained(pfns: NDArray[np.int64], ranges: NDArray[np.int64]) -> NDArray[np.bool_]:
    begun = np.searchsorted(ranges[:, 0], pfns, side="right")
    ended = np.searchsorted(ranges[:, 1], pfns, side="right")
    return np.not_equal(begun, ended)


def _concatenated_ranges(
    first: NDArray[np.int64], end: NDArray[np.int64], step: int = 1
) -> NDArray[np.int64]:
    """arange(first, end, step) of each pair, one after the other; end may come before first."""
    counts = np.maximum(-((first - end) // step), 0)
    begins = np.cumsum(counts) - counts
    return np.asarray(np.repeat(first - begins * step, counts) + np.arange(counts.sum()) * step)


def _largest_aligned(
    joined: NDArray[np.int64], max_order: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Cut ranges into the largest aligned powers of two: their starts, ascending, and orders.

    Within a range the orders rise, then stay at max_order, then fall.
    """
    at, end = joined[:, 0].copy(), joined[:, 1]
    pfns: list[NDArray[np.int64]] = []
    orders: list[NDArray[np.uint8]] = []

    def take(which: NDArray[np.bool_], order: int) -> None:
        pfns.append(at[which])
        orders.append(np.full(which.sum(), order, np.uint8))
        at[which] += 1 << order

    for order in range(max_order):
        take((at >> order & 1 == 1) & (at + (1 << order) <= end), order)
    whole = _concatenated_ranges(at, end - (1 << max_order) + 1, 1 << max_order)
    pfns.append(whole)
    orders.append(np.full(len(whole), max_order, np.uint8))
    at += (end - at) >> max_order << max_order
    for order in reversed(range(max_order)):
        take(at + (1 << order) <= end, order)
    found = np.concatenate(pfns)
    ascending = np.argsort(found)
    return found[ascending], np.concatenate(orders)[ascending]


# --- Descriptors -----------------------------------------------------------------------


class Held(Protocol):
    """The bytes of descriptors that deferred initialisation leaves alone."""

    def __call__(self, first_pfn: int, nr_pages: int, /) -> NDArray[np.uint8]: ...


def page_dtype(facts: Facts) -> np.dtype[Any]:
    """The fields that a free page uses; include/linux/mm_types.h. All else is 0."""
    places = {
        "flags": ("<u8", facts["page.flags"]),
        "lru_next": ("<u8", facts["page.lru"] + facts["list_head.next"]),
        "lru_prev": ("<u8", facts["page.lru"] + facts["list_head.prev"]),
        "private": ("<u8", facts["page.private"]),
        "page_type": ("<u4", facts["page.page_type"]),
        "_refcount": ("<i4", facts["page._refcount"]),
    }
    formats = {name: format_ for name, (format_, _) in places.items()}
    return descriptor_dtype(formats, [offset for _, offset in places.values()], facts)


def image_chunks(
    node: DeferredNode,
    facts: Facts,
    map_address: int,
    held: Held,
    *,
    first: int | None = None,
    last: int | None = None,
) -> Iterator[NDArray[np.uint8]]:
    """The descriptors of [first, last), in address order, CHUNK_BYTES at a time.

    map_address: where the descriptor of frame 0 lies or would lie (the kernel's vmemmap_base).
    held: asked for the descriptors of every page that is not in node.free, in ascending order.
    first, last: without them, from first_deferred_pfn to end_pfn.

    The heads of free blocks hang on lists in an order that is nobody's promise, so here each is
    linked to itself; who compares walks the lists first and then puts such links in the heads.
    Chunks are the same array again, so they are only read, and before the next is asked for.
    """
    dtype = page_dtype(facts)
    first = node.first_deferred_pfn if first is None else first
    last = node.end_pfn if last is None else last
    per_chunk = CHUNK_BYTES // dtype.itemsize
    template = np.zeros(per_chunk, dtype)
    template["flags"] = page_links(facts, node.nid, node.zone_index(facts))
    template["page_type"] = 0xFFFFFFFF  # _mapcount of -1
    ramp = np.arange(per_chunk, dtype=np.uint64) * dtype.itemsize + facts["page.lru"]

    free = _array(node.free)
    units = _freed_in_units(free, facts)
    heads = blocks(node, facts)
    octets = np.empty(per_chunk * dtype.itemsize, np.uint8)
    for start in range(first, last, per_chunk):
        end = min(start + per_chunk, last)
        part = octets[: (end - start) * dtype.itemsize]
        # As bytes: assigning structs would leave out what no field covers.
        part[:] = template.view(np.uint8)[: len(part)]
        pages = part.view(dtype)
        lru = ramp[: len(pages)] + (map_address + start * dtype.itemsize)
        pages["lru_next"] = pages["lru_prev"] = lru
        for unit, ranges in units:
            _poison_merged(pages, _within(ranges, start, end), unit, start, facts)
        _set_heads(pages, heads, lru, start, facts)
        for low, high in _gaps(_within(free, start, end), start, end):
            size = dtype.itemsize
            part[(low - start) * size : (high - start) * size] = held(low, high - low)
        yield part


def _freed_in_units(
    free: NDArray[np.int64], facts: Facts
) -> tuple[tuple[int, NDArray[np.int64]], ...]:
    """The ranges that are freed a pageblock at a time, and those freed a page at a time.

    Each with the pages of such a unit. Whole blocks of MAX_PAGE_ORDER within one range are split
    into their pageblocks; all the rest is freed page by page.
    Source: deferred_free_pages(), mm/mm_init.c; split_large_buddy(), mm/page_alloc.c.
    """
    order = facts["MAX_PAGE_ORDER"]
    low, high = free[:, 0], free[:, 1]
    whole_from = -(-low >> order) << order
    whole_to = np.maximum(high >> order << order, whole_from)
    before = np.stack((low, np.minimum(whole_from, high)), axis=1)
    after = np.stack((whole_to, high), axis=1)
    whole = np.stack((whole_from, whole_to), axis=1)
    pieces = np.stack((before, after), axis=1).reshape(-1, 2)
    return (
        (facts["pageblock_nr_pages"], whole[whole[:, 0] < whole[:, 1]]),
        (1, pieces[pieces[:, 0] < pieces[:, 1]]),
    )


def _poison_merged(
    pages: NDArray[Any], ranges: list[Range], unit: int, start: int, facts: Facts
) -> None:
    """Poison the links of what may have left a list to merge; heads that stay are set later.

    A unit is put on a list unless it merges at once. It merges at once only with the unit below,
    for those of a block are freed in ascending order and none above is free yet. So an even unit
    is always listed; it leaves the list for good unless it is the head in the end. An odd one is
    listed only if the unit below is not free: then it never merges and is such a head.
    Source: __free_one_page() and __del_page_from_free_list(), mm/page_alloc.c.
    """
    for low, high in ranges:
        even = pages[-(-low // (2 * unit)) * 2 * unit - start : high - start : 2 * unit]
        even["lru_next"], even["lru_prev"] = facts["LIST_POISON1"], facts["LIST_POISON2"]


def _set_heads(
    pages: NDArray[Any], heads: NDArray[Any], lru: NDArray[np.uint64], start: int, facts: Facts
) -> None:
    """Mark the first page of each free block. Source: set_buddy_order(), mm/page_alloc.c."""
    begin, end = np.searchsorted(heads["pfn"], (start, start + len(pages)))
    at = heads["pfn"][begin:end].astype(np.int64) - start
    pages["lru_next"][at] = pages["lru_prev"][at] = lru[at]
    pages["page_type"][at] = facts["PGTY_buddy"]
    pages["private"][at] = heads["order"][begin:end]


def _within(ranges: NDArray[np.int64], start: int, end: int) -> list[Range]:
    """The parts of sorted ranges within [start, end)."""
    begin = np.searchsorted(ranges[:, 1], start, side="right")
    stop = np.searchsorted(ranges[:, 0], end, side="left")
    return [(low, high) for low, high in np.clip(ranges[begin:stop], start, end).tolist()]


def _gaps(ranges: list[Range], start: int, end: int) -> Iterator[Range]:
    """What sorted ranges within [start, end) leave of it."""
    for low, high in ranges:
        if start < low:
            yield start, low
        start = high
    if start < end:
        yield start, end
