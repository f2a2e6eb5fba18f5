# SPDX-License-Identifier: GPL-2.0-only
"""One mapping of a process for fork and unmap: the VMA, its page table entries, and its folios.

Nothing here depends on a build: pages are counted from the first descriptor of the place where a
mapping is laid out, and flags are names.
"""

from collections import abc
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ream.oracle import pte
from ream.oracle.meaning import is_arm64, meaning_of
from ream.oracle.memmap import Facts
from ream.oracle.pte_arm64 import fold

PAGE_SHIFT = 12  # of every x86-64
PAGES_PER_PMD = 512
PMD_ORDER = 9

PRIVATE = frozenset({"READ", "WRITE", "MAYREAD", "MAYWRITE", "MAYEXEC", "ACCOUNT", "SOFTDIRTY"})
SHARED = frozenset({"READ", "WRITE", "SHARED", "MAYREAD", "MAYWRITE", "MAYSHARE", "SOFTDIRTY"})

WRITTEN = pte.PRESENT | pte.RW | pte.USER | pte.ACCESSED | pte.DIRTY | pte.NX
"""Bits of an entry of anonymous memory after its owner has written the page."""

Kind: TypeAlias = Literal[
    "swap",
    "swap-exclusive",
    "migration-read",
    "migration-write",
    "migration-read-exclusive",
    "device-private-read",
    "device-private-write",
    "device-exclusive-read",
    "device-exclusive-write",
    "device-exclusive",
    "marker-uffd-wp",
    "marker-poisoned",
    "hwpoison",
]

NEEDED_FACT: abc.Mapping[Kind, str] = {
    "migration-read": "SWP_MIGRATION_READ",
    "migration-write": "SWP_MIGRATION_WRITE",
    "migration-read-exclusive": "SWP_MIGRATION_READ_EXCLUSIVE",
    "device-private-read": "SWP_DEVICE_READ",
    "device-private-write": "SWP_DEVICE_WRITE",
    "device-exclusive-read": "SWP_DEVICE_EXCLUSIVE_READ",
    "device-exclusive-write": "SWP_DEVICE_EXCLUSIVE_WRITE",
    "device-exclusive": "SWP_DEVICE_EXCLUSIVE",
    "marker-uffd-wp": "SWP_PTE_MARKER",
    "marker-poisoned": "SWP_PTE_MARKER",
    "hwpoison": "SWP_HWPOISON",
}
"""The swap type of each kind except swap itself, whose type is the number of the swap file."""

MIGRATIONS: tuple[Kind, ...] = ("migration-read", "migration-write", "migration-read-exclusive")
DEVICE_PRIVATE: tuple[Kind, ...] = ("device-private-read", "device-private-write")
"""Pages in a device's memory, which no CPU can read; their entries count as mappings."""
DEVICE_EXCLUSIVE: tuple[Kind, ...] = ("device-exclusive-read", "device-exclusive-write")
"""Pages that only a device may access; their entries count as references only."""
STILL_MAPPED: tuple[Kind, ...] = ("device-exclusive",)
"""Pages that only a device may access, in kernels with one such kind; they are mapped."""


@dataclass(frozen=True)
class Place:
    """Where a mapping is laid out, and the addresses that its descriptors contain.

    map: virtual address of the descriptor of first_pfn. first_pfn: a multiple of 512, so that
    folios are aligned as the page allocator aligns them. anon_vma: that of the parent's and the
    child's VMA. file: the struct address_space of file folios. Both addresses are even.
    """

    map: int
    first_pfn: int
    anon_vma: int
    file: int
    nid: int = 0


@dataclass(frozen=True)
class Folio:
    """A folio, independent of the entries that map it.

    order: 2^order pages. first_page: its first page, counted from Place.first_pfn; a multiple of
    its size. exclusive: pages that no other process maps (PG_anon_exclusive). pins: how many times
    it is pinned (FOLL_PIN). extra_refs: further references. mapped_elsewhere: number of other
    processes that map all of it. pmds_elsewhere: number of further ones that map it with one PMD.
    flags: of its head, without PG_. index: folio->index; None is that of the first address at which
    the mapping maps it.
    """

    order: int
    first_page: int
    anon: bool = True
    exclusive: AbstractSet[int] = frozenset()
    pins: int = 0
    extra_refs: int = 0
    mapped_elsewhere: int = 0
    pmds_elsewhere: int = 0
    swapbacked: bool = True
    flags: AbstractSet[str] = frozenset({"uptodate", "lru"})
    index: int | None = None

    @property
    def nr_pages(self) -> int:
        """The number of its pages."""
        return 1 << self.order


@dataclass(frozen=True)
class Present:
    """An entry that maps page `page` of folio number `folio`; bits: the entry without its PFN."""

    folio: int
    page: int
    bits: int = WRITTEN


@dataclass(frozen=True)
class Special:
    """An entry of a frame that is not counted; its VMA has the flag MIXEDMAP or PFNMAP."""

    bits: int = pte.PRESENT | pte.RW | pte.USER | pte.ACCESSED | pte.DIRTY | pte.SPECIAL
    pfn: int = 0xABCDE


@dataclass(frozen=True)
class NonPresent:
    """An entry that is not present, such as a swap or migration entry.

    offset: into the swap file, or a poisoned frame. folio, page: the page that a migration or
    device entry refers to.
    """

    kind: Kind
    offset: int = 0
    folio: int = 0
    page: int = 0
    soft_dirty: bool = False
    uffd_wp: bool = False

    @property
    def migrates(self) -> bool:
        """Whether this is a migration entry."""
        return self.kind in MIGRATIONS

    @property
    def has_page(self) -> bool:
        """Whether it refers to a page: a migration entry or one of a device."""
        return self.migrates or self.kind in DEVICE_PRIVATE + DEVICE_EXCLUSIVE + STILL_MAPPED

    @property
    def swapped(self) -> bool:
        """Whether its page is in swap."""
        return self.kind.startswith("swap")


Slot: TypeAlias = Present | Special | NonPresent | None


@dataclass(frozen=True)
class Mapping:
    """A VMA of the parent, with the contents of each of its entries before fork.

    address: page aligned. slots: one for each page of the VMA, in order of address. flags: vm_flags
    without VM_; the child's VMA follows from them and child_uffd_wp. anonymous: whether the VMA has
    no vm_ops; its vm_pgoff is address >> PAGE_SHIFT in any case. has_anon_vma: without one,
    copy_page_range() leaves most VMAs to page faults. has_pinned: MMF_HAS_PINNED of the parent.
    nr_spares: pages behind the folios that the stub of the page allocator returns, the lowest free
    one first. One that is freed unused looks as before and is returned again, so that the j-th copy
    is in the j-th spare page. folded: whether entries are blocks where an architecture has them.

    Raises ValueError for a mapping that no kernel could have.
    """

    slots: tuple[Slot, ...]
    folios: tuple[Folio, ...]
    address: int = 1 << 40
    flags: AbstractSet[str] = PRIVATE
    anonymous: bool = True
    child_uffd_wp: bool = False
    has_anon_vma: bool = True
    has_pinned: bool = False
    nr_spares: int = 0
    folded: bool = False

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise ValueError("; ".join(faults))

    @property
    def nr_pages(self) -> int:
        """The number of pages of the VMA."""
        return len(self.slots)

    @property
    def nr_folio_pages(self) -> int:
        """Pages from Place.first_pfn to the end of the last folio; the spare ones follow."""
        return max((folio.first_page + folio.nr_pages for folio in self.folios), default=0)

    @property
    def nr_descriptors(self) -> int:
        """Descriptors of the place: those of folios, of the gaps between them, and spare ones."""
        return self.nr_folio_pages + self.nr_spares

    @property
    def child_flags(self) -> AbstractSet[str]:
        """vm_flags of the child's VMA; source: dup_userfaultfd(), fs/userfaultfd.c."""
        return self.flags if self.child_uffd_wp else self.flags - {"UFFD_WP"}

    @property
    def copies_on_write(self) -> bool:
        """Whether a write makes a private copy; source: is_cow_mapping(), include/linux/mm.h."""
        return "MAYWRITE" in self.flags and "SHARED" not in self.flags

    @property
    def page_prot(self) -> int:
        """vma->vm_page_prot: the bits of a new entry; source: protection_map of x86."""
        if not self.flags & {"READ", "WRITE", "EXEC"}:
            return pte.PROTNONE | pte.ACCESSED
        prot = pte.PRESENT | pte.USER | pte.ACCESSED
        if {"SHARED", "WRITE"} <= self.flags:
            prot |= pte.RW
        return prot if "EXEC" in self.flags else prot | pte.NX

    def pgoff(self, at: int) -> int:
        """Offset of slot `at` in pages; source: linear_page_index(), include/linux/pagemap.h."""
        return (self.address >> PAGE_SHIFT) + at

    def pages_to_pmd_end(self, at: int) -> int:
        """Slots from `at` to the end of its page table, which no batch crosses."""
        return PAGES_PER_PMD - self.pgoff(at) % PAGES_PER_PMD

    def missing_facts(self, facts: Facts) -> tuple[str, ...]:
        """Facts that its entries need and the build lacks, as it has no such swap type."""
        kinds = {slot.kind for slot in self.slots if isinstance(slot, NonPresent)}
        needed = {NEEDED_FACT[kind] for kind in kinds if kind in NEEDED_FACT}
        return tuple(sorted(needed - facts.keys()))

    def _faults(self) -> Iterator[str]:
        if self.address % (1 << PAGE_SHIFT):
            yield f"address {self.address:#x} is not page aligned"
        if not self.slots:
            yield "no slots"
        if self.child_uffd_wp and "UFFD_WP" not in self.flags:
            yield "child_uffd_wp without the flag UFFD_WP"
        if "LOCKED" in self.flags:
            yield "flag LOCKED: mlock is not modelled"
        if self.copies_on_write and not self.has_anon_vma and any(f.anon for f in self.folios):
            yield "anonymous folios without an anon_vma"
        yield from self._folio_faults()
        for at, slot in enumerate(self.slots):
            for fault in self._slot_faults(slot):
                yield f"slot {at}: {fault}"

    def _folio_faults(self) -> Iterator[str]:
        end = 0
        for number, folio in enumerate(self.folios):
            if folio.first_page % folio.nr_pages:
                yield f"folio {number}: page {folio.first_page} is not aligned to its size"
            if folio.first_page < end:
                yield f"folio {number}: page {folio.first_page} belongs to the one before"
            end = folio.first_page + folio.nr_pages
            if folio.exclusive and (not folio.anon or folio.mapped_elsewhere):
                yield f"folio {number}: pages of a file, or mapped elsewhere, are exclusive"
            if folio.pmds_elsewhere and (folio.order != PMD_ORDER or folio.exclusive):
                yield f"folio {number}: no other process maps it with one entry"
            if folio.anon and not folio.swapbacked:
                yield f"folio {number}: anonymous but not swapbacked"

    def _slot_faults(self, slot: Slot) -> Iterator[str]:
        match slot:
            case Present(folio=number, page=page) | NonPresent(
                folio=number, page=page, kind="migration-read" | "migration-write"
                | "migration-read-exclusive"
            ):  # fmt: skip
                if not 0 <= number < len(self.folios):
                    yield f"no folio {number}"
                elif not 0 <= page < self.folios[number].nr_pages:
                    yield f"no page {page} in folio {number}"
                elif isinstance(slot, NonPresent) and "locked" not in self.folios[number].flags:
                    # BUG_ON() of swap_entry_migration_sync(), include/linux/swapops.h.
                    yield f"folio {number} migrates, but is not locked"
            case Special() if not self.flags & {"MIXEDMAP", "PFNMAP"}:
                yield "a special entry without the flag MIXEDMAP"
        if isinstance(slot, Present | Special) and not pte.present(slot.bits):
            yield "neither PRESENT nor PROTNONE"


def entries(mapping: Mapping, facts: Facts, place: Place) -> Iterator[int]:
    """The words of the parent's page tables, one for each slot."""
    words = [_entry(slot, mapping, facts, place) for slot in mapping.slots]
    if mapping.folded and is_arm64(facts):
        for at, slot in enumerate(mapping.slots):
            if isinstance(slot, Present):
                fold(words, mapping.pgoff(0), at, order=mapping.folios[slot.folio].order)
    yield from words


def _entry(slot: Slot, mapping: Mapping, facts: Facts, place: Place) -> int:
    of_arch = meaning_of(facts)
    match slot:
        case None:
            return 0
        case Present():
            page = mapping.folios[slot.folio].first_page + slot.page
            return of_arch.LAYOUT.encode(place.first_pfn + page, of_arch.of_bits(slot.bits))
        case Special():
            return of_arch.LAYOUT.encode(slot.pfn, of_arch.of_bits(slot.bits))
        case NonPresent():
            return _nonpresent_entry(slot, mapping, facts, place)


def _nonpresent_entry(slot: NonPresent, mapping: Mapping, facts: Facts, place: Place) -> int:
    of_arch, offset = meaning_of(facts), slot.offset
    if slot.has_page:
        offset = place.first_pfn + mapping.folios[slot.folio].first_page + slot.page
    elif slot.kind == "marker-uffd-wp":
        offset = facts["PTE_MARKER_UFFD_WP"]
    elif slot.kind == "marker-poisoned":
        offset = facts["PTE_MARKER_POISONED"]
    swap_file = 0
    entry = of_arch.swap_entry(swap_file if slot.swapped else facts[NEEDED_FACT[slot.kind]], offset)
    if slot.kind == "swap-exclusive":
        entry |= of_arch.SWP_EXCLUSIVE
    if slot.soft_dirty:
        entry |= of_arch.SWP_SOFT_DIRTY
    if slot.uffd_wp:
        entry |= of_arch.SWP_UFFD_WP
    return entry


def is_swap(kind: int, facts: Facts) -> bool:
    """Whether the type is a swap file; source: non_swap_entry(), include/linux/swapops.h."""
    return kind < facts["MAX_SWAPFILES"]


def is_migration(kind: int, facts: Facts) -> bool:
    """Whether the type is that of a migration entry; source: is_migration_entry(), swapops.h."""
    return is_one_of(MIGRATIONS, kind, facts)


def is_one_of(kinds: tuple[Kind, ...], kind: int, facts: Facts) -> bool:
    """Whether the type is that of one of these kinds, each of which has a type of its own."""
    return kind in {facts.get(NEEDED_FACT[name]) for name in kinds}
