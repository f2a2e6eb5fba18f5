# SPDX-License-Identifier: GPL-2.0-only
"""What move_page_tables() must make of page table entries, and flush.

Written from what an entry means (ream.oracle.pte) and from what mremap() promises: the same
memory at another address, noted as new there. A kernel may take entries one by one or, as v6.17
did, those of a large folio together, whose answers differ in two bits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.fork.oracle.memory import batch_length
from ream.oracle import pte
from ream.oracle.mapping import PAGES_PER_PMD, Mapping, NonPresent, Present
from ream.oracle.memmap import Facts

PAGE_BYTES = 4096
TABLE_BYTES = PAGES_PER_PMD * PAGE_BYTES
WORD = (1 << 64) - 1

Words = NDArray[np.uint64]


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
    """What came of it: entries, bytes moved as returned, flushes and their hull.

    Of no flush flush_start is the highest word and flush_end 0.
    """

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
    if pte.none(entry):
        return 0
    soft = bool(facts["MEM_SOFT_DIRTY"])
    if pte.present(entry):
        entry |= pte.SOFT_DIRTY * soft
        return pte.clear_uffd_wp(entry) if move.loses_uffd else entry
    entry |= pte.SWP_SOFT_DIRTY * soft
    return entry & ~pte.SWP_UFFD_WP if move.loses_uffd else entry


def _batch(mapping: Mapping, entries: list[int], at: int, slot: int, end: int) -> int:
    """How many entries a kernel that batches takes together: `at` in the image, of `slot`."""
    present = mapping.slots[slot]
    if not isinstance(present, Present):
        return 1
    folio = mapping.folios[present.folio]
    if not folio.order:
        return 1
    return batch_length(
        pte,
        entries,
        0,
        at,
        min(end - at, folio.nr_pages - present.page),
        keep_dirty=False,
        keep_soft_dirty=False,
        keep_write=True,
    )


def _gathered(entries: list[int], at: int, nr: int) -> int:
    """The first entry of a batch, young and dirty if any other one is.

    Source: get_and_clear_full_ptes(), include/linux/pgtable.h.
    """
    entry = entries[at]
    for other in entries[at + 1 : at + nr]:
        if pte.dirty(other):
            entry = pte.mkdirty(entry, soft=False)
        if pte.young(other):
            entry |= pte.ACCESSED
    return entry


def window(mapping: Mapping, entries: Words, move: Move) -> Words:
    """Entries of all slots before a move of a mapping that begins at its first one."""
    before = np.zeros(move.nr_slots, np.uint64)
    before[: len(mapping.slots)] = entries
    return before


def move_page_tables(
    mapping: Mapping, entries: Words, move: Move, facts: Facts, *, batched: bool
) -> Moved:
    """What a move makes of a mapping whose entries, from its first slot on, are these.

    entries: of all slots of the move, see window(). batched: whether entries of a large folio are
    taken together.
    """
    words = [int(word) for word in entries]
    flushed: list[tuple[int, int]] = []
    for start, end in extents(mapping.address, move):
        at, any_present = start, False
        while at < end:
            entry, nr = words[at], 1
            if pte.present(entry):
                any_present = True
                nr = _batch(mapping, words, at, at, end) if batched else 1
                entry = _gathered(words, at, nr)
            slot = mapping.slots[at]
            if isinstance(slot, NonPresent) and slot.kind == "marker-uffd-wp" and move.loses_uffd:
                entry = 0
            after = moved_entry(entry, move, facts)
            for i in range(nr):
                words[at + i] = 0
                words[at + i + move.by] = pte.X86_64.advance(after, i) if i else after
            at += nr
        if any_present:
            flushed.append((start, end))
    first, last = (flushed[0][0], flushed[-1][1]) if flushed else (None, None)
    return Moved(
        np.array(words, np.uint64),
        move.nr_calls * move.nr_pages * PAGE_BYTES,
        len(flushed),
        WORD if first is None else mapping.address + first * PAGE_BYTES,
        0 if last is None else mapping.address + last * PAGE_BYTES,
    )
