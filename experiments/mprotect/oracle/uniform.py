# SPDX-License-Identifier: GPL-2.0-only
"""Mappings whose changes are timed: one kind of folio, and one kind of entry but for its page.

The answer for a whole mapping is that of each kind of entry, which change_protection() of
oracle.change works out, written for every page of it.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from experiments.fork.oracle.images import (
    Words,
    page_dtype,
    uniform,
    uniform_mapping,
    uniform_order_of_folios,
)
from ream.oracle import pte
from ream.oracle.mapping import PRIVATE, SHARED, WRITTEN, Folio, Mapping, Place, Present
from ream.oracle.memmap import Facts

from .change import PAGE_BYTES, WORD, Change, Changed, change_protection, modify
from .requests import to_none, to_read, to_write

SHUFFLE_SEED = 0x5EED
"""Of scattered frames: the same for every variant, launch and run."""

FAULTED_IN = WRITTEN | pte.SOFT_DIRTY
"""Bits of an entry that a write fault has made: pte_mkdirty() makes it soft-dirty, too."""

_OPERATIONS = {
    "rw-to-r": ("rw", "r"),
    "r-to-rw": ("r", "rw"),
    "rw-to-none": ("rw", "none"),
    "none-to-rw": ("none", "rw"),
}
_REQUESTS = {"rw": to_write, "r": to_read, "none": to_none}


@dataclass(frozen=True)
class Kind:
    """Which mapping, of rows.MprotectRow: how its entries, pages and frames are."""

    order: int
    nr_ptes: int
    operation: str
    shared: bool
    scattered: bool
    every: int
    shared_every: int
    mixed: bool = False
    unused: bool = False

    @property
    def nr_folios(self) -> int:
        """Folios that are mapped, the last one perhaps in part."""
        return -(-self.nr_ptes >> self.order)


@dataclass(frozen=True)
class History:
    """What hardware and reclaim have left in an entry: whether it is young, and whether dirty."""

    young: bool
    dirty: bool


HISTORIES = tuple(History(young, dirty) for young in (True, False) for dirty in (True, False))
"""All of them; the first is that of a page that was written, the last of one nobody has used."""


@dataclass(frozen=True, eq=False)
class Uniform:
    """A mapping before and after a change, and the change itself."""

    address: int
    entries: Words
    descriptors: NDArray[np.uint8]
    change: Change
    after: Changed


def _model(kind: Kind, *, exclusive: bool) -> Mapping:
    """A mapping of one page that is like all of a kind that are exclusive or are not."""
    pages = frozenset({0}) if exclusive and not kind.shared else frozenset()
    return Mapping(
        slots=(Present(0, 0),),
        folios=(Folio(0, 0, anon=not kind.shared, exclusive=pages),),
        address=uniform_mapping(0, 1).address,
        flags=SHARED if kind.shared else PRIVATE,
        anonymous=not kind.shared,
    )


def _bits_before(kind: Kind, history: History, *, exclusive: bool) -> int:
    """Of an entry whose page was written while it was writable, and exclusive if it is private.

    A page that is not exclusive any more was write-protected when it became so, by fork().
    """
    before, _ = _OPERATIONS[kind.operation]
    bits = FAULTED_IN if history.dirty else pte.mkclean(FAULTED_IN)
    if not history.young:
        bits &= ~pte.ACCESSED
    if not exclusive and not kind.shared:
        bits = pte.wrprotect(bits)
    if before == "rw":
        return bits
    model = _model(kind, exclusive=exclusive)
    entry = modify(pte.X86_64.encode(0, bits), _REQUESTS[before](model).protection)
    return entry & ~pte.PFN_MASK


def _placed(bits: NDArray[np.uint64], pfns: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Entries of bits and frames; the frame of one that is not PRESENT is complemented."""
    frames = pfns << np.uint64(12)
    inverted = (bits & np.uint64(pte.PRESENT)) == 0
    return bits | np.where(inverted, ~frames & np.uint64(pte.PFN_MASK), frames)


@dataclass(frozen=True)
class _Entry:
    """One kind of entry: its bits before and after, without a frame, and whether that flushes."""

    before: int
    after: int
    flushed: bool


def _entry(kind: Kind, history: History, facts: Facts, place: Place, *, exclusive: bool) -> _Entry:
    model = _model(kind, exclusive=exclusive)
    before = _bits_before(kind, history, exclusive=exclusive)
    entries = np.array([pte.X86_64.encode(place.first_pfn, before)], np.uint64)
    change = _request(kind, model)
    changed = change_protection(model, entries, change, facts, batched=False)
    return _Entry(before, int(changed.entries[0]) & ~pte.PFN_MASK, changed.nr_flushes > 0)


def _request(kind: Kind, mapping: Mapping) -> Change:
    return _REQUESTS[_OPERATIONS[kind.operation][1]](mapping)


def _descriptors(
    kind: Kind, pages: NDArray[np.int64], exclusive: NDArray[np.bool_], facts: Facts, place: Place
) -> NDArray[np.uint8]:
    """Descriptors of whole folios: uniform()'s, of whose pages some are not exclusive.

    pages, exclusive: by slot, the page mapped there and whether it is exclusive.
    """
    nr_each = 1 << kind.order
    nr_mapped = kind.nr_folios << kind.order
    octets = uniform(kind.order, nr_mapped, facts, place, state="fresh").descriptors
    descriptors = octets.reshape(-1).view(page_dtype(facts))
    own = np.uint64(1 << facts["PG_anon_exclusive"])
    if kind.shared:
        descriptors["flags"] &= ~own
        descriptors["mapping"][::nr_each] = place.file
        descriptors["_refcount"][::nr_each] += nr_each  # those of the page cache
    else:
        descriptors["flags"][pages[~exclusive]] &= ~own
    return octets


def uniform_change(kind: Kind, nr_calls: int, facts: Facts, place: Place) -> Uniform:
    """Memory before a change of a kind of mapping and after it, in calls of equal size."""
    seed = SHUFFLE_SEED if kind.scattered else None
    nr_each = 1 << kind.order
    folios = uniform_order_of_folios(kind.order, kind.nr_folios << kind.order, seed)
    pages = (folios[:, np.newaxis] * nr_each + np.arange(nr_each)).reshape(-1)[: kind.nr_ptes]
    there = np.arange(kind.nr_ptes) % kind.every == 0
    exclusive = np.full(kind.nr_ptes, not kind.shared)
    if kind.shared_every:
        exclusive[:: kind.shared_every] = False

    histories = HISTORIES if kind.mixed else HISTORIES[-1:] if kind.unused else HISTORIES[:1]
    kinds = [
        _entry(kind, history, facts, place, exclusive=one)
        for history in histories
        for one in (False, True)
    ]
    drawn = np.random.default_rng(SHUFFLE_SEED).integers(0, len(histories), kind.nr_ptes)
    number = 2 * drawn + exclusive
    pfns = pages.astype(np.uint64) + np.uint64(place.first_pfn)

    def placed(bits: list[int]) -> Words:
        return np.where(there, _placed(np.array(bits, np.uint64)[number], pfns), np.uint64(0))

    flushed = there & np.array([one.flushed for one in kinds])[number]
    at = np.flatnonzero(flushed)
    mapping = _model(kind, exclusive=not kind.shared)
    change = replace(_request(kind, mapping), nr=kind.nr_ptes // nr_calls, nr_calls=nr_calls)
    return Uniform(
        address=mapping.address,
        entries=placed([one.before for one in kinds]),
        descriptors=_descriptors(kind, pages, exclusive, facts, place),
        change=change,
        after=Changed(
            entries=placed([one.after for one in kinds]),
            nr_pages=int(there.sum()),
            nr_flushes=int(flushed.reshape(nr_calls, -1).any(axis=1).sum()),
            flush_start=mapping.address + int(at[0]) * PAGE_BYTES if at.size else WORD,
            flush_end=mapping.address + int(at[-1] + 1) * PAGE_BYTES if at.size else 0,
        ),
    )
