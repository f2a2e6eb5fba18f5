# SPDX-License-Identifier: GPL-2.0-only
"""What change_protection() must make of page table entries, return and flush.

Written from what an entry means (ream.oracle.meaning) and from Linux 6.12's rules for who may write
to a page without a fault, not from its loop, which these rules judge. A kernel may take entries
one by one or, as since v6.17, those of a large folio together, whose answers differ in a few bits
and, where entries can be blocks, in how often these are converted.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from experiments.fork.oracle.memory import batch_length
from ream.oracle import pte
from ream.oracle.flushes import Flushes
from ream.oracle.mapping import (
    DEVICE_EXCLUSIVE,
    NEEDED_FACT,
    Folio,
    Kind,
    Mapping,
    NonPresent,
    Present,
)
from ream.oracle.meaning import meaning_of
from ream.oracle.memmap import Facts

PAGE_BYTES = 4096

HINT = pte.PROTNONE | pte.ACCESSED
"""PAGE_NONE, the protection that change_protection() itself chooses for NUMA hinting faults; as a
mapping has it."""

_READABLE: dict[Kind, Kind] = {
    "device-private-write": "device-private-read",
    "device-exclusive-write": "device-exclusive-read",
}


@dataclass(frozen=True)
class Change:
    """One call of change_protection() or several, as its callers make them.

    flags: vm_flags of the VMA without VM_, by then. page_prot: its vm_page_prot, by then, in bits
    as mappings have them. asks: MM_CP_*, without that. first, nr: slots of the first call; None: to
    the end. nr_calls: the second begins behind the first, and so on. mm_users: of the address
    space. overlapped: another CPU unmaps pages of it at the same time, and reclaim has left it a
    flush.
    """

    flags: AbstractSet[str]
    page_prot: int
    asks: AbstractSet[str] = frozenset()
    first: int = 0
    nr: int | None = None
    nr_calls: int = 1
    mm_users: int = 1
    overlapped: bool = False

    @property
    def protection(self) -> int:
        """The protection that entries get."""
        return HINT if "PROT_NUMA" in self.asks else self.page_prot

    def nr_each(self, nr_slots: int) -> int:
        """Slots of each call, of a VMA with so many."""
        return nr_slots - self.first if self.nr is None else self.nr


@dataclass(frozen=True, eq=False)
class Changed:
    """What came of it: entries, their number as returned, flushes and their hull."""

    entries: NDArray[np.uint64]
    nr_pages: int
    nr_flushes: int
    flush_start: int
    flush_end: int


@dataclass
class _Call:
    """One call under way: the entries so far, and what else came of them."""

    mapping: Mapping
    change: Change
    facts: Facts
    entries: list[int]
    batched: bool
    at_once: bool
    flushes: Flushes
    """Flushes of this call and of those before it."""
    nr_pages: int = 0
    flushed: list[tuple[int, int]] = field(default_factory=list)
    """From a slot to another one: what the gather flushes in the end."""

    def __post_init__(self) -> None:
        self._pte = meaning_of(self.facts)
        self._first = self.mapping.pgoff(0)
        self._protection = self._pte.of_bits(self.change.protection)

    def run(self, at: int, end: int) -> None:
        """Change slots from `at` on, none of which is behind `end`."""
        while at < end:
            slot = self.mapping.slots[at]
            if self._pte.present(self.entries[at]):
                at += self._present(at, end)
                continue
            if isinstance(slot, NonPresent):
                self._replace(at, self._nonpresent(self.entries[at], slot))
            elif self._marks_none():
                self._replace(at, self._marker())
            at += 1

    def _replace(self, at: int, entry: int) -> None:
        self.nr_pages += entry != self.entries[at]
        self.entries[at] = entry

    def _present(self, at: int, end: int) -> int:
        """Change one entry, or all of a batch; returns how many."""
        slot = self.mapping.slots[at]
        folio = self.mapping.folios[slot.folio] if isinstance(slot, Present) else None
        if "PROT_NUMA" in self.change.asks and self._is_no_hint(self.entries[at], folio):
            return 1
        nr = self._batch(at, end, folio) if self.batched else 1
        before = self._taken(at, nr)
        after = self._with_uffd_wp(self._pte.modify(before, self._protection))
        writable = self._writable(after, at, nr, folio)
        start = 0
        while start < nr:
            stop = next((i for i in range(start, nr) if writable[i] != writable[start]), nr)
            becomes = self._pte.mkwrite(after) if writable[start] else after
            self._commit(at + start, at + stop, self._pte.LAYOUT.advance(becomes, start), folio)
            if self._needs_flush(before, becomes):
                self.flushed.append((at + start, at + stop))
            start = stop
        self.nr_pages += nr
        return nr

    def _taken(self, at: int, nr: int) -> int:
        """Take out the entries of a batch; the first one, young and dirty if any of them was."""
        soft = bool(self.facts["MEM_SOFT_DIRTY"])
        table, first, entry = self.entries, self._first, 0
        for start, stop in self._steps(at, at + nr):
            taken, converted = self._pte.take_entries(table, first, start, stop - start, soft=soft)
            self._converted(converted)
            if start == at:
                entry = taken
                continue
            entry = self._pte.mkdirty(entry, soft=soft) if self._pte.dirty(taken) else entry
            entry = self._pte.mkyoung(entry) if self._pte.young(taken) else entry
        return entry

    def _commit(self, start: int, stop: int, entry: int, folio: Folio | None) -> None:
        order = folio.order if folio else 0
        for at, end in self._steps(start, stop):
            its = self._pte.LAYOUT.advance(entry, at - start)
            self._converted(
                self._pte.set_entries(self.entries, self._first, at, its, end - at, order=order)
            )

    def _steps(self, start: int, stop: int) -> list[tuple[int, int]]:
        """What of a batch is taken out, or written, by one call of the architecture's code."""
        return [(start, stop)] if self.at_once else [(at, at + 1) for at in range(start, stop)]

    def _converted(self, slots: list[int]) -> None:
        """Blocks that begin at these slots became single entries, or those a block."""
        for at in slots:
            self.flushes.add(*self.addresses(at, at + self._pte.BLOCK_PAGES))

    def addresses(self, start: int, stop: int) -> tuple[int, int]:
        """Where slots lie: the first address, and the one behind the last."""
        return self.mapping.address + start * PAGE_BYTES, self.mapping.address + stop * PAGE_BYTES

    def _needs_flush(self, before: int, after: int) -> bool:
        """Whether the build flushes an entry; some flush whatever has changed."""
        return not self.facts["PTE_NEEDS_FLUSH"] or self._pte.needs_flush(before, after)

    def _batch(self, at: int, end: int, folio: Folio | None) -> int:
        """How many entries a kernel that batches takes together.

        Source: mprotect_folio_pte_batch(), mm/mprotect.c of 6.17: RW and SOFT_DIRTY are respected.
        """
        slot = self.mapping.slots[at]
        if folio is None or not folio.order or not isinstance(slot, Present):
            return 1
        limit = min(end - at, self.mapping.pages_to_pmd_end(at), folio.nr_pages - slot.page)
        return batch_length(
            self._pte,
            self.entries,
            self._first,
            at,
            limit,
            keep_dirty=False,
            keep_soft_dirty=True,
            keep_write=True,
        )

    def _with_uffd_wp(self, entry: int) -> int:
        if "UFFD_WP" in self.change.asks:
            return self._pte.mkuffd_wp(entry)
        return self._pte.clear_uffd_wp(entry) if "UFFD_WP_RESOLVE" in self.change.asks else entry

    def _writable(self, entry: int, at: int, nr: int, folio: Folio | None) -> list[bool]:
        """For each entry of a batch, whether it becomes writable though the new protection is not.

        Only what a write fault would make writable without looking further: of private memory a
        page that is this process's alone, of shared memory one whose file knows that it is dirty.
        Source: can_change_pte_writable(), mm/mprotect.c.
        """
        flags = self.change.flags
        if not self._may_become_writable(entry):
            return [False] * nr
        if "SHARED" in flags:
            return [self._pte.dirty(entry)] * nr
        if folio is None or not folio.anon:
            return [False] * nr
        slots = self.mapping.slots[at : at + nr]
        return [isinstance(slot, Present) and slot.page in folio.exclusive for slot in slots]

    def _may_become_writable(self, entry: int) -> bool:
        """Whether nothing but the page keeps an entry from being made writable."""
        flags, asks = self.change.flags, self.change.asks
        if (
            "TRY_CHANGE_WRITABLE" not in asks
            or self._pte.write(entry)
            or self._pte.no_access(entry)
        ):
            return False
        tracked = self.facts["MEM_SOFT_DIRTY"] and "SOFTDIRTY" not in flags
        if tracked and not self._pte.soft_dirty(entry):
            return False
        return not ("UFFD_WP" in flags and self._pte.uffd_wp(entry))

    def _is_no_hint(self, entry: int, folio: Folio | None) -> bool:
        """Whether NUMA balancing leaves an entry alone: everything here lies on node 0."""
        if folio is None or self._pte.no_access(entry):
            return True
        others = folio.mapped_elsewhere + folio.pmds_elsewhere
        if self.mapping.copies_on_write and (folio.pins or others):
            return True
        if folio.pins and self.facts["NUMA_SPARES_ALL_PINNED"]:
            return True
        if not folio.swapbacked and "dirty" in folio.flags:
            return True
        return "SHARED" not in self.change.flags and self.change.mm_users == 1

    def _marks_none(self) -> bool:
        """Whether an empty entry becomes a marker: only a file may have a page behind it."""
        return (
            "UFFD_WP" in self.change.asks
            and "UFFD_WP" in self.change.flags
            and not self.mapping.anonymous
        )

    def _marker(self) -> int:
        return self._pte.swap_entry(self.facts["SWP_PTE_MARKER"], self.facts["PTE_MARKER_UFFD_WP"])

    def _nonpresent(self, entry: int, slot: NonPresent) -> int:
        """An entry that maps no page, without a right to write that it may hold.

        Source: change_pte_range(), mm/mprotect.c, and copy_nonpresent_pte() for what is not kept.
        """
        if slot.kind == "marker-poisoned":
            return entry
        if slot.kind == "marker-uffd-wp":
            return 0 if "UFFD_WP_RESOLVE" in self.change.asks else entry
        if slot.kind == "migration-write":
            anon = self.mapping.folios[slot.folio].anon
            kind: Kind = "migration-read-exclusive" if anon else "migration-read"
            entry = self._readable(entry, kind, entry & self._pte.SWP_SOFT_DIRTY)
        elif slot.kind in _READABLE:
            keeps = self._pte.SWP_UFFD_WP | self._pte.SWP_SOFT_DIRTY * (
                slot.kind in DEVICE_EXCLUSIVE
            )
            entry = self._readable(entry, _READABLE[slot.kind], entry & keeps)
        if "UFFD_WP" in self.change.asks:
            return entry | self._pte.SWP_UFFD_WP
        if "UFFD_WP_RESOLVE" in self.change.asks:
            return entry & ~self._pte.SWP_UFFD_WP
        return entry

    def _readable(self, entry: int, kind: Kind, kept: int) -> int:
        return (
            self._pte.swap_entry(self.facts[NEEDED_FACT[kind]], self._pte.swap_offset(entry)) | kept
        )


def change_protection(
    mapping: Mapping,
    entries: NDArray[np.uint64],
    change: Change,
    facts: Facts,
    *,
    batched: bool,
    at_once: bool = True,
) -> Changed:
    """What all calls of a change make of a mapping's entries, one for each of its slots.

    batched: whether entries of a large folio are taken together. at_once: whether these are taken
    out and written by one call of the architecture's code, which need not convert blocks; without
    code of an architecture they are taken and written one by one. Slots must be of the kind that
    the mapping says, but a present entry may have any bits.
    """
    words = [int(word) for word in entries]
    nr_each = change.nr_each(len(words))
    flushes = Flushes.of(facts)
    nr_pages = 0
    if change.overlapped:
        flushes.add_all()  # what reclaim has left
    for number in range(change.nr_calls):
        call = _Call(mapping, change, facts, words, batched, at_once, flushes)
        first = change.first + number * nr_each
        call.run(first, first + nr_each)
        nr_pages += call.nr_pages
        # A gather that does not go on after the end of a VMA flushes what it has before it learns
        # that another CPU's may have missed something.
        if call.flushed and not (change.overlapped and facts["MMU_GATHER_MERGE_VMAS"]):
            flushes.add(*call.addresses(call.flushed[0][0], call.flushed[-1][1]))
        if change.overlapped:
            flushes.add_all()
    return Changed(np.array(words, np.uint64), nr_pages, flushes.nr, flushes.start, flushes.end)
