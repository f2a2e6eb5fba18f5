# SPDX-License-Identifier: GPL-2.0-only
"""Whether a guest's deferred pages are initialised and freed as they must be: all of their state.

The oracle predicts it from what was free before. Kernel threads run meanwhile, and one of them
may have got a page already: such a page is counted, must be in use, and is told. What is left of
the block that it was taken from is predicted like all else.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ream.counted import counted
from ream.errors import VerificationFailed
from ream.oracle.memmap import Facts

from . import buddy
from .buddy import DeferredNode
from .zones import Node, Zones

MOST_TAKEN = 1024
"""Pages that threads may have got by then: more than the stacks of all workers, and far less
than anything that initialisation could lose without being seen."""


@dataclass(frozen=True)
class State:
    """A node's deferred pages after their initialisation: all as the oracle predicts."""

    node: DeferredNode
    digest: str
    """Digest over all descriptors' bytes, the free blocks and the pageblock types."""
    nr_pages: int
    """Pages that were initialised and freed."""
    taken: tuple[int, ...] = ()
    """Frames that were allocated in the meantime."""


def check(zones: Zones, node: Node) -> State:
    """Compare all that deferred initialisation has left of a node with the oracle's prediction.

    Raises VerificationFailed naming what is not as predicted.
    """
    predicted, facts = node.deferred, zones.facts
    found = zones.free_blocks(node)
    _check_counters(zones, node, found)
    late = found[found["pfn"] >= predicted.first_deferred_pfn]
    wanted = buddy.blocks(predicted, facts)
    broken = broken_blocks(predicted.nid, wanted, late)
    taken = taken_pages(broken, late)
    _check_taken(zones, node, taken)
    _check_parts(zones, predicted, broken, taken, np.setdiff1d(late, wanted))
    intact = wanted[~np.isin(wanted["pfn"], broken["pfn"])]
    digest = hashlib.blake2b(intact.tobytes(), digest_size=16)
    digest.update(_check_pageblocks(zones, node))
    _check_map(zones, node, _Listed(late, broken, taken), digest.update)
    return State(
        predicted, digest.hexdigest(), buddy.managed_pages(predicted), tuple(taken.tolist())
    )


def check_freed(zones: Zones, nodes: Iterable[Node], nr_freed_before: int) -> None:
    """Hold the PGFREE event against the pages of all nodes: others may free some meanwhile.

    Raises VerificationFailed if it has grown by less.
    """
    gained = zones.nr_freed() - nr_freed_before
    wanted = sum(buddy.managed_pages(node.deferred) for node in nodes)
    if gained < wanted:
        raise VerificationFailed(
            f"the event PGFREE has grown by {gained}, {wanted} pages were deferred"
        )


def _check_counters(zones: Zones, node: Node, found: NDArray[Any]) -> None:
    nid = node.deferred.nid
    gained = zones.member(node.zone, "zone.managed_pages") - node.managed_pages
    wanted = buddy.managed_pages(node.deferred)
    if gained != wanted:
        raise VerificationFailed(
            f"node {nid}: managed_pages has grown by {gained}, {wanted} pages were deferred"
        )
    listed = int((1 << found["order"].astype(np.int64)).sum())
    if (said := zones.nr_free_pages(node)) != listed:
        raise VerificationFailed(
            f"node {nid}: NR_FREE_PAGES is {said}, {listed} pages are on the free lists"
        )


def broken_blocks(nid: int, predicted: NDArray[Any], found: NDArray[Any]) -> NDArray[Any]:
    """The predicted blocks that are not on their list, because a part of each was taken.

    Both by pfn. Raises VerificationFailed if a block on a list is no part of a predicted one of
    the same type.
    """
    missing, extra = np.setdiff1d(predicted, found), np.setdiff1d(found, predicted)
    at = np.searchsorted(missing["pfn"], extra["pfn"], side="right") - 1
    inside = (at >= 0) & bool(len(missing))
    if len(missing):
        whole = missing[np.maximum(at, 0)]
        inside &= _ends(extra) <= _ends(whole)
        inside &= extra["migratetype"] == whole["migratetype"]
    if not inside.all():
        wrong = extra[~inside][0]
        raise VerificationFailed(
            f"node {nid}: {counted(int((~inside).sum()), 'free block')} too many, the first of"
            f" order {wrong['order']} and type {wrong['migratetype']} at pfn {wrong['pfn']:#x};"
            f" {len(missing)} that should be are missing"
        )
    return missing


def taken_pages(broken: NDArray[Any], found: NDArray[Any]) -> NDArray[np.uint64]:
    """Frames of broken blocks that no block on a list has."""
    pages = [np.arange(low, high, dtype=np.uint64) for low, high in _spans(broken)]
    frames = np.concatenate([*pages, np.empty(0, np.uint64)])
    at = np.searchsorted(found["pfn"], frames, side="right").astype(np.int64) - 1
    free = at >= 0
    if len(found):
        free &= frames < _ends(found)[np.maximum(at, 0)]
    return frames[~free]


def _check_parts(
    zones: Zones, node: DeferredNode, broken: NDArray[Any], taken: NDArray[Any], parts: NDArray[Any]
) -> None:
    """What is left of broken blocks is listed in blocks as large as can be: free buddies merge.

    Their types have been compared. Source: expand() and __free_one_page(), mm/page_alloc.c.
    """
    left = replace(node, free=tuple(_left(broken, taken.tolist())))
    wanted = buddy.blocks(left, zones.facts)
    for wrong in np.setxor1d(wanted[["pfn", "order"]], parts[["pfn", "order"]])[:1]:
        raise VerificationFailed(
            f"node {node.nid}: of blocks that pages were taken from {len(wanted)} should be left,"
            f" {len(parts)} are; at pfn {wrong['pfn']:#x} one of order {wrong['order']} is only"
            " found or only predicted"
        )


def _left(broken: NDArray[Any], taken: list[int]) -> Iterator[tuple[int, int]]:
    """What of broken blocks nobody has taken; taken: ascending, and all of it in them."""
    for low, high in _spans(broken):
        its = taken[bisect_left(taken, low) : bisect_left(taken, high)]
        edges = [low, *chain.from_iterable((pfn, pfn + 1) for pfn in its), high]
        yield from (
            (first, last)
            for first, last in zip(edges[::2], edges[1::2], strict=True)
            if first < last
        )


def _check_taken(zones: Zones, node: Node, taken: NDArray[np.uint64]) -> None:
    """Each of them must be in use, or on a list of some CPU, and they must be few."""
    nid = node.deferred.nid
    if len(taken) > MOST_TAKEN:
        raise VerificationFailed(
            f"node {nid}: {len(taken)} pages are not free, the first at pfn {taken[0]:#x};"
            f" nobody can have taken more than {MOST_TAKEN}"
        )
    if not len(taken):
        return
    held = np.setdiff1d(taken, zones.cpu_lists(node))
    lost = held[~_in_use(zones, held)]
    if len(lost):
        raise VerificationFailed(
            f"node {nid}: {counted(len(lost), 'page')} neither free nor in use, the first at"
            f" pfn {lost[0]:#x}"
        )


def _in_use(zones: Zones, pfns: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether each page, or the head of its compound page, has a reference, and was free before.

    A page that was initialised and never freed has one as well, but is linked to itself still.
    """
    pages = zones.pages_at(pfns)
    size = np.uint64(zones.facts["sizeof.page"])
    # A tail's first word behind the flags is its head's address plus 1; it is where lru is.
    tails = pages["lru_next"] & np.uint64(1) == 1
    heads = pfns.copy()
    heads[tails] = (pages["lru_next"][tails] - np.uint64(1 + zones.page(0))) // size
    lru = np.uint64(zones.page(0) + zones.facts["page.lru"]) + pfns * size
    in_use: NDArray[np.bool_] = (zones.pages_at(heads)["_refcount"] > 0) & (
        pages["lru_next"] != lru
    )
    return in_use | _in_stacks(zones, pfns, pages["_refcount"], in_use)


def _in_stacks(
    zones: Zones, pfns: NDArray[np.uint64], counts: NDArray[np.int32], in_use: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether each page is one of a thread's stack: only the first of these has a reference.

    Source: alloc_thread_stack_node(), kernel/fork.c, which asks for no compound page.
    """
    each = zones.facts["THREAD_SIZE"] // zones.facts["PAGE_SIZE"]
    firsts = pfns[in_use & (counts == 1) & (pfns % np.uint64(each) == 0)]
    rest = (firsts[:, None] + np.arange(1, each, dtype=np.uint64)).reshape(-1, each - 1)
    unreferenced = np.isin(rest, pfns[counts == 0]).all(axis=1)
    return np.isin(pfns, rest[unreferenced])


def _check_pageblocks(zones: Zones, node: Node) -> bytes:
    """The bits of the pageblocks, which are as predicted."""
    held = zones.pageblock_flags(node.deferred)
    size, offset = zones.facts["sizeof.usage"], zones.facts["usage.pageblock_flags"]
    areas = np.frombuffer(buddy.usage_bytes(node.deferred, zones.facts), np.uint8)
    wanted = areas.reshape(-1, size)[:, offset:]
    if not np.array_equal(held, wanted):
        section = int(np.flatnonzero((held != wanted).any(axis=1))[0])
        per_section = zones.facts["PAGES_PER_SECTION"]
        pfn = (node.deferred.first_deferred_pfn // per_section + section) * per_section
        raise VerificationFailed(
            f"node {node.deferred.nid}: the pageblocks of the section at pfn {pfn:#x} are of"
            " other types than predicted"
        )
    return held.tobytes()


@dataclass(frozen=True)
class _Listed:
    """What is on lists, as was checked, and how that is not what was predicted."""

    heads: NDArray[Any]
    """All free blocks, as the lists link them."""
    broken: NDArray[Any]
    """Predicted, and not there; of their pages, heads has what is left."""
    taken: NDArray[np.uint64]
    """Frames that were allocated in the meantime, so their contents cannot be predicted."""


def _check_map(
    zones: Zones, node: Node, listed: _Listed, hear: Callable[[memoryview], None]
) -> None:
    """Compare every byte of the descriptors, from the first deferred one on; `hear` the free ones.

    Of taken pages that is the prediction.
    """
    facts = zones.facts
    base, size = zones.page(0), facts["sizeof.page"]
    dtype = buddy.page_dtype(facts)
    predicted = node.deferred
    chunks = buddy.image_chunks(predicted, facts, base, node.held_at)
    read = zones.map_of(predicted.first_deferred_pfn, predicted.end_pfn)
    for (first, octets), image in zip(read, chunks, strict=True):
        end = first + len(octets) // size
        begin, stop = np.searchsorted(listed.heads["pfn"], (first, end))
        heads = listed.heads[begin:stop]
        at = heads["pfn"] - np.uint64(first)
        lru = base + heads["pfn"] * np.uint64(size) + np.uint64(facts["page.lru"])
        pages = octets.view(dtype)
        pages["lru_next"][at] = pages["lru_prev"][at] = lru
        wanted = image
        if broken := buddy.clipped(_spans(listed.broken), first, end):
            wanted = image.copy()
            _mark_heads(wanted.view(dtype), pages, at, heads["order"], facts)
            _excuse(
                wanted.view(dtype), pages, at, [(a - first, b - first) for a, b in broken], facts
            )
            taken = listed.taken[slice(*np.searchsorted(listed.taken, (first, end)))]
            # As bytes: assigning structs would leave out what no field covers.
            its = taken - np.uint64(first)
            octets.reshape(-1, size)[its] = wanted.reshape(-1, size)[its]
        if not np.array_equal(octets, wanted):
            raise VerificationFailed(_difference(predicted, first, octets, wanted, size))
        for low, high in buddy.clipped(predicted.free, first, end):
            hear(octets[(low - first) * size : (high - first) * size].data)


def _mark_heads(
    wanted: NDArray[Any],
    pages: NDArray[Any],
    at: NDArray[np.uint64],
    orders: NDArray[np.uint8],
    facts: Facts,
) -> None:
    """Predict blocks that begin at these indices: as they were, or what is left of larger ones."""
    for link in ("lru_next", "lru_prev"):
        wanted[link][at] = pages[link][at]
    wanted["page_type"][at] = facts["PGTY_buddy"]
    wanted["private"][at] = orders


def _excuse(
    wanted: NDArray[Any],
    pages: NDArray[Any],
    at: NDArray[np.uint64],
    broken: Iterable[tuple[int, int]],
    facts: Facts,
) -> None:
    """Let pages of broken blocks have been on lists meanwhile: parts of them merge again.

    at: where blocks begin, whose links have been checked. Source: __del_page_from_free_list().
    """
    off_list = (pages["lru_next"] == facts["LIST_POISON1"]) & (
        pages["lru_prev"] == facts["LIST_POISON2"]
    )
    off_list[at] = False
    for low, high in broken:
        which = low + np.flatnonzero(off_list[low:high])
        for link in ("lru_next", "lru_prev"):
            pages[link][which] = wanted[link][which]


def _difference(
    node: DeferredNode, first: int, held: NDArray[np.uint8], wanted: NDArray[np.uint8], size: int
) -> str:
    differ = held != wanted
    at, byte = divmod(int(np.argmax(differ)), size)
    pages = int(differ.reshape(-1, size).any(axis=1).sum())
    pfn = first + at
    free = any(low <= pfn < high for low, high in node.free)
    return (
        f"node {node.nid}: byte {byte} of the struct page of pfn {pfn:#x}, which was"
        f" {'to be freed' if free else 'not to be touched'}, is {held[at * size + byte]:#04x}, not"
        f" {wanted[at * size + byte]:#04x}; {pages} pages differ near it"
    )


def _ends(blocks: NDArray[Any]) -> NDArray[np.uint64]:
    ends: NDArray[np.uint64] = blocks["pfn"] + (np.uint64(1) << blocks["order"].astype(np.uint64))
    return ends


def _spans(blocks: NDArray[Any]) -> list[tuple[int, int]]:
    return list(zip(blocks["pfn"].tolist(), _ends(blocks).tolist(), strict=True))


class States:
    """States of memory after boots: the same for the same memory, with any number of CPUs."""

    def __init__(self) -> None:
        self._first: dict[tuple[DeferredNode, tuple[int, ...]], tuple[str, str]] = {}

    def check(self, title: str, states: Iterable[State]) -> None:
        """Raise VerificationFailed if another boot with the same free pages left others."""
        for state in states:
            place = state.node, state.taken
            other, digest = self._first.setdefault(place, (title, state.digest))
            if digest != state.digest:
                raise VerificationFailed(
                    f"node {state.node.nid}: its pages are not the same with {title} and {other}"
                )
