# SPDX-License-Identifier: GPL-2.0-only
"""What move_page_tables() must make of page table entries, and flush.

Written from what an entry means (ream.oracle.meaning) and from what mremap() promises: the same
memory at another address, noted as new there. A kernel may take entries one by one or, as v6.17
did, those of a large folio together, or together only where an entry is of a block, as v6.17-rc2
did. Their answers differ in two bits and, where entries can be blocks, in how often these are
converted.
"""

from collections.abc import Mapping as ByTaking
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from experiments.fork.oracle.memory import batch_length
from ream.oracle.flushes import Flushes
from ream.oracle.mapping import PAGES_PER_PMD, Mapping, NonPresent, Present
from ream.oracle.meaning import Meaning, meaning_of
from ream.oracle.memmap import Facts

PAGE_BYTES = 4096
TABLE_BYTES = PAGES_PER_PMD * PAGE_BYTES

Words = NDArray[np.uint64]

Taking = Literal["batches", "single", "hinted"]
"""How a kernel takes the entries of a large folio: together, one by one, or together where one says
that it is of a block."""
TAKINGS: tuple[Taking, ...] = ("batches", "single", "hinted")


@dataclass(frozen=True)
class Move:
    """Calls of move_page_tables(), which move as many pages each, by as many slots.

    first: slot of the first call's first page; the next call's is `stride` slots further.
    by: from a page's slot to its new one; at least nr_pages, and no multiple of a page table's, as
    whole tables would be moved then. loses_uffd: whether the VMA is watched by a userfaultfd that
    does not ask for remap events, so that the new one is not watched.
    """

    nr_pages: int
    by: int
    first: int = 0
    stride: int = 0
    nr_calls: int = 1
    loses_uffd: bool = False

    def __post_init__(self) -> None:
        if self.by < self.nr_pages or self.by % PAGES_PER_PMD == 0:
            raise ValueError(f"by={self.by}: overlaps, or moves whole page tables")

    @property
    def nr_slots(self) -> int:
        """Slots from the first one of all calls to the last new one."""
        return self.first + (self.nr_calls - 1) * self.stride + self.by + self.nr_pages

    def starts(self) -> tuple[int, ...]:
        """The first slot of each call."""
        return tuple(self.first + number * self.stride for number in range(self.nr_calls))


@dataclass(frozen=True, eq=False)
class Moved:
    """What came of it: entries, bytes moved as returned, flushes and their hull."""

    entries: Words
    nr_bytes: int
    nr_flushes: int
    flush_start: int
    flush_end: int


def extents(address: int, move: Move) -> list[tuple[int, int]]:
    """Slots [start, end) that lie in one page table each, before and after.

    Translations are flushed for each of them, while the locks of both tables are held.
    """
    cuts: list[tuple[int, int]] = []
    for first in move.starts():
        at, end = first, first + move.nr_pages
        while at < end:
            left = (
                PAGES_PER_PMD - (address // PAGE_BYTES + slot) % PAGES_PER_PMD
                for slot in (at, at + move.by)
            )
            nr = min(end - at, *left)
            cuts.append((at, at + nr))
            at += nr
    return cuts


def moved_entry(entry: int, move: Move, facts: Facts) -> int:
    """An entry at its new place; 0 if nothing is there any more.

    It is soft-dirty, as the new address was not there at the last look. What a userfaultfd
    protected is not protected where it does not watch. Source: Documentation/admin-guide/mm/
    soft-dirty.rst; include/linux/userfaultfd_k.h.
    """
    of_arch = meaning_of(facts)
    if of_arch.none(entry):
        return 0
    soft = bool(facts["MEM_SOFT_DIRTY"])
    if of_arch.present(entry):
        entry |= of_arch.SOFT_DIRTY * soft
        return of_arch.clear_uffd_wp(entry) if move.loses_uffd else entry
    entry |= of_arch.SWP_SOFT_DIRTY * soft
    return entry & ~of_arch.SWP_UFFD_WP if move.loses_uffd else entry


def window(mapping: Mapping, entries: Words, move: Move) -> Words:
    """Entries of all slots before a move of a mapping that begins at its first one."""
    before = np.zeros(move.nr_slots, np.uint64)
    before[: len(mapping.slots)] = entries
    return before


@dataclass
class _Calls:
    """Calls under way: the entries so far, and what was flushed."""

    mapping: Mapping
    move: Move
    facts: Facts
    entries: list[int]
    taking: Taking
    flushes: Flushes

    def __post_init__(self) -> None:
        self._pte: Meaning = meaning_of(self.facts)
        self._first = self.mapping.pgoff(0)

    def run(self, at: int, end: int) -> None:
        """Move slots [at, end), which lie in one page table before and after."""
        start, any_present = at, False
        while at < end:
            any_present |= self._pte.present(self.entries[at])
            at += self._take(at, end)
        if any_present:
            self._flush(start, end)

    def _take(self, at: int, end: int) -> int:
        """Move one entry, or all of a batch; returns how many."""
        slot = self.mapping.slots[at]
        folio = self.mapping.folios[slot.folio] if isinstance(slot, Present) else None
        nr = self._batch(at, end)
        soft = bool(self.facts["MEM_SOFT_DIRTY"])
        entry, unfolded = self._pte.take_entries(self.entries, self._first, at, nr, soft=soft)
        if isinstance(slot, NonPresent) and slot.kind == "marker-uffd-wp" and self.move.loses_uffd:
            entry = 0
        after, to = moved_entry(entry, self.move, self.facts), at + self.move.by
        order = folio.order if folio else 0
        folded = self._pte.set_entries(self.entries, self._first, to, after, nr, order=order)
        for block in (*unfolded, *folded):
            self._flush(block, block + self._pte.BLOCK_PAGES)
        return nr

    def _batch(self, at: int, end: int) -> int:
        """How many entries from a slot on are taken together."""
        slot, entry = self.mapping.slots[at], self.entries[at]
        if not isinstance(slot, Present) or self.taking == "single":
            return 1
        if self.taking == "hinted" and self._pte.batch_hint(entry, self._first, at) == 1:
            return 1
        folio = self.mapping.folios[slot.folio]
        if not folio.order:
            return 1
        return batch_length(
            self._pte,
            self.entries,
            self._first,
            at,
            min(end - at, folio.nr_pages - slot.page),
            keep_dirty=False,
            keep_soft_dirty=False,
            keep_write=True,
        )

    def _flush(self, start: int, end: int) -> None:
        """Translations of slots."""
        address = self.mapping.address
        self.flushes.add(address + start * PAGE_BYTES, address + end * PAGE_BYTES)


def move_page_tables(
    mapping: Mapping,
    entries: Words,
    move: Move,
    facts: Facts,
    *,
    taking: Taking,
    reclaimed: bool = False,
) -> Moved:
    """What a move makes of a mapping whose entries, from its first slot on, are these.

    entries: of all slots of the move, see window(). reclaimed: reclaim has left a flush of
    everything, which is made before the first entry is moved.
    """
    words = [int(word) for word in entries]
    flushes = Flushes.of(facts)
    if reclaimed:
        flushes.add_all()
    calls = _Calls(mapping, move, facts, words, taking, flushes)
    for start, end in extents(mapping.address, move):
        calls.run(start, end)
    return Moved(
        np.array(words, np.uint64),
        move.nr_calls * move.nr_pages * PAGE_BYTES,
        flushes.nr,
        flushes.start,
        flushes.end,
    )


Answers = ByTaking[Taking, Moved]
"""What kernels may answer, by how they take entries."""


def answers(
    mapping: Mapping, entries: Words, move: Move, facts: Facts, *, reclaimed: bool = False
) -> Answers:
    """What every kind of kernel makes of it."""
    return {
        taking: move_page_tables(mapping, entries, move, facts, taking=taking, reclaimed=reclaimed)
        for taking in TAKINGS
    }
