# SPDX-License-Identifier: GPL-2.0-only
"""What is migrated: folios on a caller's list, how they are mapped, and what stands in their way.

Nothing here depends on a build. Pages are counted from the first frame of the sources; the
target of the folio at page i is at page i of the targets, each time it is asked for, so that
memory afterwards does not depend on the order in which targets are.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from ream.oracle import pte
from ream.oracle.mapping import PAGES_PER_PMD

PMD_ORDER = 9

PAGE_PROT = pte.PRESENT | pte.USER | pte.ACCESSED | pte.NX
"""vm_page_prot of a private, writable VMA: bits of a new entry; source: protection_map of x86."""

PSE = pte.PAT
"""The same bit: in an entry of a PMD it says that the page is huge."""

Mode: TypeAlias = Literal["async", "sync_light", "sync"]
Mapped: TypeAlias = Literal["ptes", "pmd", "both", "unmapped"]

REASONS = (
    *("COMPACTION", "MEMORY_FAILURE", "MEMORY_HOTPLUG", "SYSCALL", "MEMPOLICY_MBIND"),
    *("NUMA_MISPLACED", "CONTIG_RANGE", "LONGTERM_PIN", "DEMOTION", "DAMON"),
)
"""enum migrate_reason without MR_, in its order; include/linux/migrate_mode.h."""

FLAGS = frozenset(
    {"uptodate", "referenced", "active", "unevictable", "dirty", "workingset", "mlocked"}
    | {"hwpoison"}
)
"""What may be set in the head of a folio, without PG_; a split gives all of it to every page."""


@dataclass(frozen=True)
class BatchLimit:
    """When a batch is full: with `pages`, if it has `folios` or `most_pages`, too."""

    pages: int
    folios: int = 1
    most_pages: int = sys.maxsize

    def is_full(self, nr_folios: int, nr_pages: int) -> bool:
        """Whether a batch of so much takes no further folio."""
        many = nr_folios >= self.folios or nr_pages >= self.most_pages
        return nr_pages >= self.pages and many


STOCK_LIMIT = BatchLimit(512)
"""NR_MAX_BATCHED_MIGRATION of 6.12: HPAGE_PMD_NR."""

_FAULTS = ("locked", "extra-ref", "writeback", "no-target", "freed", "partially-mapped", "pinned")

_SMALL_PINS = 1024
"""References of a pin of a small folio: GUP_PIN_COUNTING_BIAS, include/linux/mm.h."""


@dataclass(frozen=True)
class Place:
    """Where things lie, and the addresses that descriptors hold.

    src_map, dst_map: of the descriptors of src_pfn and dst_pfn, which are multiples of 512.
    anon_vma: of all VMAs and folios; even. list: the caller's list head. src_queue, dst_queue:
    the list heads of the two nodes' deferred splits; equal if the nodes are. address: where every
    VMA begins; a multiple of 2 MiB.
    """

    src_map: int
    dst_map: int
    src_pfn: int
    dst_pfn: int
    anon_vma: int
    list: int
    src_queue: int
    dst_queue: int
    src_nid: int = 0
    dst_nid: int = 1
    address: int = 1 << 40


@dataclass(frozen=True)
class PteBits:
    """What an entry says of its page; exclusive is kept in the page (PG_anon_exclusive)."""

    young: bool = True
    dirty: bool = True
    soft_dirty: bool = False
    write: bool = True
    exclusive: bool = True
    uffd_wp: bool = False


READ_ONLY = PteBits(write=False, exclusive=False)
"""Bits of an entry after fork, in parent and child."""


@dataclass(frozen=True)
class Folio:
    """An anonymous folio that its caller has isolated.

    order: 2^order pages. ptes: of each page, or one for all; of a huge entry one. mapped: by what;
    "both": by ptes in the first address space, and in the second by a huge entry. holes: its pages
    that the last of several address spaces does not map, as after MADV_DONTNEED.
    flags: of its head; "hwpoison": memory_failure() has found it. swapbacked: not if MADV_FREE was
    called on it. nr_mappings: address spaces that map it, the first ones of all. aligned: its
    address is aligned to its size; else it follows the one before and may lie across two page
    tables.
    fault: "locked", "extra-ref" a further reference, under "writeback", "no-target" no memory for
    one, "poison:K" page K cannot be read, "freed" all references but the caller's are gone,
    "partially-mapped" some ptes are None, and the folio waits for a split on its node's queue;
    "pinned" its exclusive pages may not be unmapped (FOLL_PIN).
    underused: it waits there although all of it is mapped, as a new huge page does.
    """

    order: int = 0
    ptes: tuple[PteBits | None, ...] = (PteBits(),)
    mapped: Mapped = "ptes"
    flags: frozenset[str] = frozenset({"uptodate"})
    swapbacked: bool = True
    nr_mappings: int = 1
    fault: str | None = None
    aligned: bool = True
    holes: frozenset[int] = frozenset()
    underused: bool = False

    @property
    def nr_pages(self) -> int:
        """Base pages of the folio."""
        return 1 << self.order

    @property
    def is_huge(self) -> bool:
        """Whether one entry of a PMD could map it; source: folio_test_pmd_mappable()."""
        return self.order == PMD_ORDER

    def is_huge_in(self, space: int) -> bool:
        """Whether a huge entry maps it in an address space."""
        return self.mapped == "pmd" or (self.mapped == "both" and space > 0)

    def bits_in(self, space: int) -> tuple[PteBits | None, ...]:
        """Bits of its entries in an address space, in order of address; None: no entry."""
        if self.mapped == "unmapped" or space >= self.nr_mappings:
            return ()
        if self.is_huge_in(space):
            return self.ptes[:1]
        all_of_it = self.ptes * self.nr_pages if len(self.ptes) == 1 else self.ptes
        if not self.holes or space == 0:
            return all_of_it
        return tuple(None if page in self.holes else bits for page, bits in enumerate(all_of_it))

    @property
    def bits(self) -> tuple[PteBits | None, ...]:
        """The same of the first address space, which maps all that is mapped."""
        return self.bits_in(0)

    @property
    def mapped_bits(self) -> tuple[PteBits, ...]:
        """The same without what is not mapped."""
        return tuple(bits for bits in self.bits if bits is not None)

    def nr_entries_in(self, space: int) -> int:
        """Entries that map it in an address space."""
        return sum(bits is not None for bits in self.bits_in(space))

    def nr_pages_in(self, space: int) -> int:
        """Pages that an address space has of it."""
        nr_entries = self.nr_entries_in(space)
        return nr_entries * self.nr_pages if self.is_huge_in(space) else nr_entries

    @property
    def nr_mapped_pages(self) -> int:
        """Pages of the folio that are mapped at all."""
        return self.nr_pages_in(0)

    @property
    def nr_huge(self) -> int:
        """Huge entries that map it, in all address spaces."""
        return sum(map(self.is_huge_in, range(self.nr_mappings)))

    @cached_property
    def nr_entries(self) -> int:
        """Entries that map it, in all address spaces; each holds a reference."""
        return sum(map(self.nr_entries_in, range(self.nr_mappings)))

    @cached_property
    def nr_ptes(self) -> tuple[int, ...]:
        """For each page, the number of entries that map this page only."""
        nr = [0] * self.nr_pages
        for space in range(self.nr_mappings):
            if not self.is_huge_in(space):
                for page, bits in enumerate(self.bits_in(space)):
                    nr[page] += bits is not None
        return tuple(nr)

    @property
    def nr_held(self) -> int:
        """References besides those of entries: the caller's, and extra ones that hold the folio."""
        if self.fault == "pinned":
            return 1 + (1 if self.order else _SMALL_PINS)
        return 1 + (self.fault == "extra-ref")

    @property
    def is_broken(self) -> bool:
        """Whether its entry says afterwards that the memory is bad, and maps nothing any more."""
        return "hwpoison" in self.flags

    @property
    def poisoned_page(self) -> int | None:
        """The page of it that cannot be read."""
        name, _, page = (self.fault or "").partition(":")
        return int(page) if name == "poison" else None

    @cached_property
    def has_dirty_entry(self) -> bool:
        """Whether unmapping it makes the folio dirty."""
        return any(bits.dirty for bits in self.mapped_bits)

    @property
    def queues(self) -> bool:
        """Whether unmapping it page by page leaves it partially mapped for a while.

        Source: __folio_remove_rmap(), mm/rmap.c; a folio of two pages has no room for a queue.
        A huge entry that is removed last maps all of it meanwhile.
        """
        return self.mapped == "ptes" and self.order > 1

    @property
    def may_queue(self) -> bool:
        """Whether that depends on what is removed first."""
        return self.mapped in {"ptes", "both"} and self.order > 1


@dataclass(frozen=True)
class Unit:
    """A folio where it is, or, after a split, a page of it.

    first_page: counted from the first source frame. first_slot: from the beginning of the VMA.
    """

    folio: Folio
    first_page: int
    first_slot: int

    def pieces(self) -> tuple["Unit", ...]:
        """The folio split into one-page folios, in the order of the list that a split makes.

        A page that nobody maps has its caller's reference alone. The first page comes last.
        Source: __split_huge_page(), mm/huge_memory.c, and try_split_folio(), mm/migrate.c.
        """
        folio = self.folio
        dirty = {"dirty"} if folio.has_dirty_entry else set()
        pieces = []
        for page, bits in enumerate(folio.bits):
            piece = Folio(0, flags=folio.flags | dirty, swapbacked=folio.swapbacked)
            if bits is None:
                piece = replace(piece, mapped="unmapped", fault="freed")
            else:
                piece = replace(piece, ptes=(bits,), nr_mappings=folio.nr_ptes[page])
            pieces.append(Unit(piece, self.first_page + page, self.first_slot + page))
        return tuple(reversed(pieces))


@dataclass(frozen=True)
class Migration:
    """A call of migrate_pages(), or one after the other, on folios that lie in memory in order.

    listed: their numbers in the order of the caller's list, which is also that of their
    addresses; None: as they lie. limit: of a batch. spread: each folio has as many times its size,
    in memory and in its address space; what is behind it is nobody's. folios_per_call: a call is
    given that many, as compaction does, the last what is left; None: there is one call. mlocked:
    every VMA is (VM_LOCKED).
    Raises ValueError for what no kernel could be asked, or what is not modelled: waiting for a
    lock or for writeback, splitting a folio that has a target already or a huge entry, calls
    but the first with anything in their way, and a second try of what was mlocked or is broken.
    """

    folios: tuple[Folio, ...]
    mode: Mode = "async"
    reason: str = "SYSCALL"
    limit: BatchLimit = STOCK_LIMIT
    listed: tuple[int, ...] | None = None
    spread: int = 1
    folios_per_call: int | None = None
    mlocked: bool = False

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise ValueError("; ".join(faults))

    @property
    def order_of_list(self) -> Sequence[int]:
        """Numbers of the folios as migrate_pages() meets them."""
        return range(len(self.folios)) if self.listed is None else self.listed

    @property
    def calls(self) -> tuple[Sequence[int], ...]:
        """Numbers of the folios that each call is given, in the order of its list."""
        listed = self.order_of_list
        each = self.folios_per_call or len(listed)
        return tuple(listed[at : at + each] for at in range(0, len(listed), each))

    @cached_property
    def _first_pages(self) -> tuple[int, ...]:
        end, found = 0, []
        for folio in self.folios:
            found.append(-(-end // folio.nr_pages) * folio.nr_pages)
            end = found[-1] + folio.nr_pages * self.spread
        return tuple(found)

    @cached_property
    def _first_slots(self) -> tuple[int, ...]:
        end, found = 0, [0] * len(self.folios)
        for number in self.order_of_list:
            folio = self.folios[number]
            found[number] = -(-end // folio.nr_pages) * folio.nr_pages if folio.aligned else end
            end = found[number] + folio.nr_pages * self.spread
        return tuple(found)

    def first_page(self, number: int) -> int:
        """Where a folio begins, counted from the first source frame; a multiple of its size."""
        return self._first_pages[number]

    def first_slot(self, number: int) -> int:
        """Where it is mapped, in pages from the beginning of the VMA."""
        return self._first_slots[number]

    @property
    def nr_pages(self) -> int:
        """Frames of the sources, those that are nobody's included; as many of the targets."""
        return self._first_pages[-1] + self.folios[-1].nr_pages * self.spread

    @property
    def nr_pmds(self) -> int:
        """Page tables of each VMA, or huge entries in their place."""
        last = self.order_of_list[-1]
        end = self._first_slots[last] + self.folios[last].nr_pages * self.spread
        return -(-end // PAGES_PER_PMD)

    @property
    def nr_mappings(self) -> int:
        """Address spaces."""
        return max(folio.nr_mappings for folio in self.folios)

    @property
    def poisoned_pages(self) -> tuple[int, ...]:
        """Source pages whose copy fails."""
        return tuple(
            first + folio.poisoned_page
            for first, folio in zip(self._first_pages, self.folios, strict=True)
            if folio.poisoned_page is not None
        )

    @property
    def no_target(self) -> tuple[int, ...]:
        """Heads for which the allocator has no target."""
        return tuple(
            unit.first_page
            for unit in self.units
            if unit.folio.fault == "no-target" and not self.splits(unit.folio)
        )

    @property
    def no_large_target(self) -> tuple[int, ...]:
        """Heads for which it has none as long as the folio is large."""
        return tuple(
            unit.first_page
            for unit in self.units
            if unit.folio.fault == "no-target" and self.splits(unit.folio)
        )

    @property
    def waiting(self) -> tuple[int, ...]:
        """Heads on the queue of deferred splits to begin with, in its order."""
        return tuple(
            unit.first_page
            for unit in self.units
            if unit.folio.underused or unit.folio.fault == "partially-mapped"
        )

    @property
    def underused(self) -> frozenset[int]:
        """Those of them of which all is mapped."""
        return frozenset(unit.first_page for unit in self.units if unit.folio.underused)

    @property
    def units(self) -> tuple[Unit, ...]:
        """The folios where they are, by number."""
        return tuple(map(Unit, self.folios, self._first_pages, self._first_slots))

    def splits(self, folio: Folio) -> bool:
        """Whether the kernel has to split it before it finds targets for its pages.

        A fault that found memory on the wrong node does not; migrate_pages_batch().
        """
        if folio.fault == "partially-mapped":
            return True
        return folio.fault == "no-target" and folio.order > 0 and self.reason != "NUMA_MISPLACED"

    def _faults(self) -> Iterator[str]:
        if not self.folios:
            yield "no folios"
        if sorted(self.order_of_list) != list(range(len(self.folios))):
            yield "listed: not every folio once"
        if self.mode not in {"async", "sync_light", "sync"}:
            yield f"mode {self.mode!r} is none of async, sync_light, sync"
        if self.reason not in REASONS:
            yield f"reason {self.reason!r} is none of {', '.join(REASONS)}"
        numbers = {
            "limit": self.limit.pages,
            "spread": self.spread,
            "folios_per_call": self.folios_per_call,
        }
        for name, number in numbers.items():
            if number is not None and number < 1:
                yield f"{name} {number} is below 1"
        # Folios that are alike have the same faults, and rows that are timed have many.
        asked: dict[Folio, int] = {}
        for number, folio in enumerate(self.folios):
            asked.setdefault(folio, number)
        for folio, number in asked.items():
            for fault in (*_folio_faults(folio), *self._unmodelled(folio)):
                yield f"folio {number}: {fault}"

    def _unmodelled(self, folio: Folio) -> Iterator[str]:
        if self.folios_per_call is not None and folio.fault is not None:
            later = {self.folios[number] for listed in self.calls[1:] for number in listed}
            if folio.fault != "extra-ref" or folio in later:
                yield f"{folio.fault} in one of several calls: not modelled, or not in this one"
        if folio.fault == "writeback" and self.mode == "sync":
            yield "under writeback in mode sync: would wait for ever"
        waits = self.mode == "sync" or (self.mode == "sync_light" and "uptodate" in folio.flags)
        if folio.fault == "locked" and waits:
            yield f"locked in mode {self.mode}: would wait for ever"
        if self.mode != "async" and (self.mlocked or folio.is_broken):
            yield "mlocked or broken, and tried again: not modelled"
        if self.mlocked and self.splits(folio):
            yield "mlocked and split: not modelled"
        if self.splits(folio) and folio.nr_huge:
            yield "mapped by a huge entry: would be split, which is not modelled"
        if folio.poisoned_page is not None and folio.may_queue and self.mode != "async":
            yield "large, poisoned, and tried again: would be split, which is not modelled"


def _folio_faults(folio: Folio) -> Iterator[str]:
    if not 0 <= folio.order <= PMD_ORDER or folio.order == 1:
        yield f"order {folio.order} is of no anonymous folio (0, 2 to {PMD_ORDER})"
        return
    if folio.nr_mappings not in {1, 2}:
        yield f"{folio.nr_mappings} mappings: 1 or 2"
    if not folio.flags <= FLAGS:
        yield f"flags {', '.join(sorted(folio.flags - FLAGS))} are not modelled"
    if {"active", "unevictable"} <= folio.flags:
        yield "active and unevictable"
    yield from _mapped_faults(folio)
    yield from _fault_faults(folio)


def _mapped_faults(folio: Folio) -> Iterator[str]:
    nr_ptes = {"pmd": 1, "both": 1}.get(folio.mapped, folio.nr_pages)
    if len(folio.ptes) not in {1, nr_ptes}:
        yield f"{len(folio.ptes)} ptes: one for all, or one for each of its entries"
    if folio.nr_huge and not (folio.is_huge and folio.aligned):
        yield f"mapped by a huge entry: order {PMD_ORDER} and aligned"
    if folio.mapped == "both" and folio.nr_mappings == 1:
        yield "mapped by both: in two address spaces"
    if folio.mapped == "unmapped" and folio.fault not in {"freed", "extra-ref"}:
        yield "unmapped, hence without a reference but its caller's: freed, or extra-ref"
    is_partial = folio.mapped == "ptes" and folio.ptes.count(None) in range(1, folio.nr_pages)
    if is_partial != (folio.fault == "partially-mapped") or (None in folio.ptes and not is_partial):
        yield "partially-mapped: some ptes are None, some are not, and only then"
    for bits in set(folio.ptes):
        if bits is not None:
            yield from _bits_faults(bits, folio.nr_mappings)
    yield from _special_faults(folio)


def _special_faults(folio: Folio) -> Iterator[str]:
    if folio.holes and not (
        (folio.mapped, folio.nr_mappings) == ("ptes", 2) and folio.holes < {*range(folio.nr_pages)}
    ):
        yield "holes: in the second address space, which maps the rest by ptes"
    if folio.underused and folio.mapped != "pmd":
        yield "underused: mapped by a huge entry"
    every = folio.mapped_bits
    if folio.fault == "pinned" and not all(bits.exclusive and not bits.dirty for bits in every):
        yield "pinned: exclusive and clean; what a try makes dirty is not modelled"
    is_plain = folio.mapped == "ptes" and not folio.order
    if folio.is_broken and not (is_plain and not any(bits.exclusive for bits in every)):
        yield "hwpoison: a small folio, mapped, and none that is exclusive"


def _fault_faults(folio: Folio) -> Iterator[str]:
    page = folio.poisoned_page
    if page is not None and not 0 <= page < folio.nr_pages:
        yield f"no page {page} to be poisoned"
    if page is None and folio.fault is not None and folio.fault not in _FAULTS:
        yield f"fault {folio.fault!r} is none of {', '.join(_FAULTS)}, poison:K"
    if folio.fault == "freed" and folio.mapped != "unmapped":
        yield "freed but mapped"


def _bits_faults(bits: PteBits, nr_mappings: int) -> Iterator[str]:
    if bits.write and not bits.exclusive:
        yield "a writable entry of a page that is not exclusive"
    if bits.write and bits.uffd_wp:
        yield "a writable entry that userfaultfd protects"
    if bits.exclusive and nr_mappings > 1:
        yield "an exclusive page with two mappings"
