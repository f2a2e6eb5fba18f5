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
from ream.oracle.flushes import Flushes
from ream.oracle.mapping import PRIVATE, SHARED, WRITTEN, Folio, Mapping, Place, Present
from ream.oracle.meaning import Meaning, meaning_of
from ream.oracle.memmap import Facts
from ream.oracle.pte_arm64 import CONT, VALID

from .change import PAGE_BYTES, Change, Changed, change_protection
from .requests import to_none, to_read, to_write

SHUFFLE_SEED = 0x5EED
"""Seed for the order of scattered frames: the same for every variant, launch and run."""

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
    folded: bool = False
    """Whether entries are blocks before, where they are alike and the architecture has blocks."""

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
    """A mapping before and after a change, and the change itself.

    after: in a kernel that takes the entries of a folio together, single: one by one, or together
    but writes them one by one.
    """

    address: int
    entries: Words
    descriptors: NDArray[np.uint8]
    change: Change
    after: Changed
    single: Changed


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


def _bits_before(kind: Kind, history: History, of_arch: Meaning, *, exclusive: bool) -> int:
    """Bits of an entry whose page was written while writable, and is exclusive if private.

    A page that is not exclusive any more was write-protected when it became so, by fork().
    """
    before, _ = _OPERATIONS[kind.operation]
    bits = FAULTED_IN if history.dirty else pte.mkclean(FAULTED_IN)
    if not history.young:
        bits &= ~pte.ACCESSED
    if not exclusive and not kind.shared:
        bits = pte.wrprotect(bits)
    entry = of_arch.LAYOUT.encode(0, of_arch.of_bits(bits))
    if before != "rw":
        asked = _REQUESTS[before](_model(kind, exclusive=exclusive))
        entry = of_arch.modify(entry, of_arch.of_bits(asked.protection))
    return entry & ~of_arch.LAYOUT.pfn_mask


@dataclass(frozen=True)
class _Entry:
    """One kind of entry: its bits before and after, without a frame, and whether that flushes."""

    before: int
    after: int
    flushed: bool


def _entry(kind: Kind, history: History, facts: Facts, place: Place, *, exclusive: bool) -> _Entry:
    of_arch = meaning_of(facts)
    model = _model(kind, exclusive=exclusive)
    before = _bits_before(kind, history, of_arch, exclusive=exclusive)
    entries = np.array([of_arch.LAYOUT.encode(place.first_pfn, before)], np.uint64)
    change = _request(kind, model)
    changed = change_protection(model, entries, change, facts, batched=False)
    after = int(changed.entries[0]) & ~of_arch.LAYOUT.pfn_mask
    return _Entry(before, after, changed.nr_flushes > 0)


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


@dataclass(frozen=True, eq=False)
class _Slots:
    """Every slot of a mapping: the number of its kind, and where it leads."""

    kinds: tuple[_Entry, ...]
    number: NDArray[np.int64]
    there: NDArray[np.bool_]
    """Whether the entry is not empty."""
    pfns: Words
    nr_each: int
    """Pages of a folio."""
    of_arch: Meaning

    def entries(self, bits: list[int]) -> Words:
        """Entries, of the bits of each kind."""
        placed = [self.of_arch.LAYOUT.encode(0, one) for one in bits]
        mask = np.uint64(self.of_arch.LAYOUT.pfn_mask)
        # Where a frame is complemented, that of 0 has all bits.
        frames = (self.pfns << np.uint64(12)) & mask
        found = np.array(placed, np.uint64)[self.number] ^ frames
        return np.where(self.there, found, np.uint64(0))

    @property
    def before(self) -> Words:
        return self.entries([one.before for one in self.kinds])

    @property
    def after(self) -> Words:
        return self.entries([one.after for one in self.kinds])

    @property
    def joined(self) -> NDArray[np.bool_]:
        """Whether a kernel that takes entries together writes one with the entry before it.

        They are of one folio, and neither what they are nor what they become differs in a right.
        """
        rights = [
            (self.of_arch.write(one.before), self.of_arch.write(one.after)) for one in self.kinds
        ]
        of_slot = np.array(rights, np.bool_)[self.number]
        alike = (of_slot[1:] == of_slot[:-1]).all(axis=1) & self.there[1:] & self.there[:-1]
        return np.append(False, alike & (np.arange(1, len(of_slot)) % self.nr_each != 0))

    @property
    def flushed(self) -> NDArray[np.bool_]:
        by_kind: NDArray[np.bool_] = np.array([one.flushed for one in self.kinds], np.bool_)
        return self.there & by_kind[self.number]


def uniform_change(kind: Kind, nr_calls: int, facts: Facts, place: Place) -> Uniform:
    """Memory before a change of a kind of mapping and after it, in calls of equal size."""
    seed = SHUFFLE_SEED if kind.scattered else None
    nr_each = 1 << kind.order
    folios = uniform_order_of_folios(kind.order, kind.nr_folios << kind.order, seed)
    pages = (folios[:, np.newaxis] * nr_each + np.arange(nr_each)).reshape(-1)[: kind.nr_ptes]
    exclusive = np.full(kind.nr_ptes, not kind.shared)
    if kind.shared_every:
        exclusive[:: kind.shared_every] = False

    histories = HISTORIES if kind.mixed else HISTORIES[-1:] if kind.unused else HISTORIES[:1]
    drawn = np.random.default_rng(SHUFFLE_SEED).integers(0, len(histories), kind.nr_ptes)
    slots = _Slots(
        kinds=tuple(
            _entry(kind, history, facts, place, exclusive=one)
            for history in histories
            for one in (False, True)
        ),
        number=2 * drawn + exclusive,
        there=np.arange(kind.nr_ptes) % kind.every == 0,
        pfns=pages.astype(np.uint64) + np.uint64(place.first_pfn),
        nr_each=nr_each,
        of_arch=meaning_of(facts),
    )
    mapping = _model(kind, exclusive=not kind.shared)
    change = replace(_request(kind, mapping), nr=kind.nr_ptes // nr_calls, nr_calls=nr_calls)
    before = slots.before
    if kind.folded:
        before |= _in_blocks(kind, before, slots.of_arch)
    after, single = (
        _changed(kind, slots, change, before, address=mapping.address, facts=facts, batched=batched)
        for batched in (True, False)
    )
    return Uniform(
        address=mapping.address,
        entries=before,
        descriptors=_descriptors(kind, pages, exclusive, facts, place),
        change=change,
        after=after,
        single=single,
    )


def _changed(
    kind: Kind,
    slots: _Slots,
    change: Change,
    before: Words,
    *,
    address: int,
    facts: Facts,
    batched: bool,
) -> Changed:
    """All calls of a change, each of whole blocks: entries become blocks where they can be.

    A kernel that takes a folio's entries together enters them as blocks. One by one, the first of a
    block makes the others single, and the last one makes them a block; both flush them.
    """
    of_arch = slots.of_arch
    after, flushed = slots.after, slots.flushed
    blocks = _in_blocks(kind, after, of_arch)
    folded = blocks
    if batched:
        whole, single = _last_written(slots)
        folded = blocks * single
        blocks = blocks * (whole | single)
    flushes = Flushes.of(facts)
    each = of_arch.BLOCK_PAGES
    for entries in (folded,) if batched else (before, folded):
        for at in np.flatnonzero(entries[::each] & _block_bit(of_arch)) * each:
            flushes.add(address + int(at) * PAGE_BYTES, address + int(at + each) * PAGE_BYTES)
    nr_each = change.nr_each(len(after))
    for call in range(change.nr_calls):
        its = np.flatnonzero(flushed[call * nr_each : (call + 1) * nr_each]) + call * nr_each
        if its.size:
            flushes.add(address + int(its[0]) * PAGE_BYTES, address + int(its[-1] + 1) * PAGE_BYTES)
    return Changed(
        entries=after | blocks,
        nr_pages=int(slots.there.sum()),
        nr_flushes=flushes.nr,
        flush_start=flushes.start,
        flush_end=flushes.end,
    )


def _last_written(slots: _Slots) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """By slot, whether its block is written together, and whether the last entry of it is alone.

    A block of which more than one entry, but not all, are written last stays single entries: only
    what is written alone looks at its neighbours.
    """
    each, joined = slots.of_arch.BLOCK_PAGES, slots.joined
    nr = len(joined) // each * each
    of_block = joined[:nr].reshape(-1, each)
    goes_on = np.append(joined[1:], False)[:nr].reshape(-1, each)[:, -1]
    found = np.zeros((2, len(joined)), np.bool_)
    found[0, :nr] = np.repeat(of_block[:, 1:].all(axis=1), each)
    found[1, :nr] = np.repeat(~of_block[:, -1] & ~goes_on, each)
    return found[0], found[1]


def _block_bit(of_arch: Meaning) -> np.uint64:
    """What an entry of a block has, where there are blocks."""
    return np.uint64(CONT if of_arch.BLOCK_PAGES > 1 else 0)


def _in_blocks(kind: Kind, entries: Words, of_arch: Meaning) -> Words:
    """By slot the bit of a block, if it is of one: aligned, of one folio, and all alike.

    The mapping and its folios are aligned alike.
    """
    each, bit = of_arch.BLOCK_PAGES, _block_bit(of_arch)
    found = np.zeros_like(entries)
    nr = len(entries) // each * each
    if not bit or 1 << kind.order < each:
        return found
    bits = (entries[:nr] & ~np.uint64(of_arch.LAYOUT.pfn_mask)).reshape(-1, each)
    alike = (bits == bits[:, :1]).all(axis=1) & ((bits[:, 0] & np.uint64(VALID)) != 0)
    found[:nr] = np.repeat(np.where(alike, bit, np.uint64(0)), each)
    return found
