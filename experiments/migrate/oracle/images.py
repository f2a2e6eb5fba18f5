# SPDX-License-Identifier: GPL-2.0-only
"""Memory around a migration, as arrays: descriptors of both nodes, entries of every address space.

Offsets, shifts and constants come from the build (`facts`), the rules from Linux.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.fork.oracle.images import Words, lay_out, page_dtype, spare
from experiments.fork.oracle.memory import Features
from ream.oracle import mapping, pte
from ream.oracle.mapping import PAGE_SHIFT, PAGES_PER_PMD
from ream.oracle.memmap import Facts, descriptor_dtype, first_tail_dtype
from ream.oracle.mm_ids import PARENT, owners_of, write_owners

from .folios import PAGE_PROT, PSE, Folio, Migration, Place, PteBits, Unit

Octets: TypeAlias = NDArray[np.uint8]
Side: TypeAlias = Literal["src", "dst"]
Member: TypeAlias = tuple[Side, int]
"""Member of a list: the side it is on, and the page of its descriptor."""

SIDES: tuple[Side, Side] = ("src", "dst")

LIST_BYTES = 16
"""sizeof(struct list_head): the heads of several calls' lists lie side by side."""

_FLAGS_OF_FAULTS = {"locked", "writeback"}
"""Faults that are flags of the folio."""


@dataclass(frozen=True, eq=False)
class State:
    """Memory before or after. Nobody writes to its arrays once it is made.

    src, dst: descriptors, shape (nr_pages, sizeof.page). entries: of each address space, those
    of the VMA's page tables; 0 where a huge entry is instead. pmds: those huge entries; 0 where
    there is a page table.
    """

    src: Octets
    dst: Octets
    entries: tuple[Words, ...]
    pmds: tuple[Words, ...]


class Memory:
    """Descriptors in the making: as many of sources as of targets.

    Folios are named by their side and the page where they begin; `nr` that are alike and lie one
    after the other are written at once, which is what makes gibibytes of small ones quick.
    spread, mlocked, underused: as Migration has them.
    """

    def __init__(
        self,
        nr_pages: int,
        facts: Facts,
        place: Place,
        *,
        spread: int = 1,
        mlocked: bool = False,
        underused: frozenset[int] = frozenset(),
    ) -> None:
        self._spread = spread
        self._mlocked = mlocked
        self._underused = underused
        self._facts = facts
        self._place = place
        self.octets: dict[Side, Octets] = {
            side: spare(nr_pages, facts, self._world(side)) for side in SIDES
        }

    def fields(self, side: Side) -> NDArray[Any]:
        """The fields of all descriptors of a side; shape (nr_pages,), to be written to."""
        fields: NDArray[Any] = self.octets[side].reshape(-1).view(page_dtype(self._facts))
        return fields

    def enter(self, side: Side, first_page: int, folio: Folio, *, nr: int = 1) -> None:
        """Mapped folios, all but their index, of spare pages or of allocated targets."""
        octets, pages, second = self._folios(side, first_page, folio.order, nr)
        flags = folio.flags | (_FLAGS_OF_FAULTS & {folio.fault or ""})
        like = mapping.Folio(folio.order, 0, swapbacked=folio.swapbacked, flags=flags)
        lay_out(octets, first_page, like, self._facts, self._world(side))
        pages["_refcount"][:, 0] = folio.nr_held + folio.nr_entries
        exclusive = [page for page, bits in enumerate(folio.bits) if bits and bits.exclusive]
        pages["flags"][:, exclusive] |= self._flags("anon_exclusive")
        nr_ptes = np.array(folio.nr_ptes)
        pages["_mapcount"][:, nr_ptes > 0] = nr_ptes[nr_ptes > 0] - 1
        if second is None:
            return
        second["_pincount"] = folio.fault == "pinned"
        second["_large_mapcount"] = folio.nr_entries - 1
        second["_entire_mapcount"] = folio.nr_huge - 1
        nr_mapped = folio.nr_mapped_pages if folio.mapped != "pmd" else 0
        second["_nr_pages_mapped"] = nr_mapped + self._facts["ENTIRELY_MAPPED"] * (
            folio.nr_huge > 0
        )
        spaces = range(folio.nr_mappings)
        owners = owners_of([(PARENT + space, folio.nr_entries_in(space)) for space in spaces])
        write_owners(second, owners, self._facts)

    def allocate(self, first_page: int, order: int, *, nr: int = 1) -> None:
        """Targets of spare pages: as get_new_folio() gives them out."""
        like = mapping.Folio(order, 0, anon=False, swapbacked=False, flags=frozenset())
        octets, _, _ = self._folios("dst", first_page, order, nr)
        lay_out(octets, first_page, like, self._facts, self._world("dst"))

    def move(self, first_page: int, folio: Folio, reason: str, *, nr: int = 1) -> None:
        """Targets become what their sources were, all but the index, and the sources nobody's.

        The reference that is not an entry's is the one of folio_add_lru(), until the folio is on
        a list. Source: folio_migrate_flags(), mm/migrate.c; neither mlock nor poison is among
        what it copies. Nothing maps instead of an entry for bad memory.
        """
        dirty = {"dirty"} if folio.has_dirty_entry else set()
        mlocked = {"mlocked"} if self._is_mlocked_again(folio) else set()
        moved = replace(folio, flags=folio.flags - {"mlocked", "hwpoison"} | dirty | mlocked)
        if folio.is_broken:
            moved = replace(moved, mapped="unmapped")
        self.enter("dst", first_page, moved, nr=nr)
        self.unlink("dst", first_page, folio.order, nr=nr)
        self.leave(first_page, folio, reason, nr=nr)

    def split(self, unit: Unit) -> None:
        """A source becomes small folios that are mapped again, all but their links.

        What a page behind the first held for its folio is gone but for its node and zone.
        Source: __split_huge_page(), mm/huge_memory.c.
        """
        part = slice(unit.first_page, unit.first_page + unit.folio.nr_pages)
        self.octets["src"][part] = spare(unit.folio.nr_pages, self._facts, self._world("src"))
        for piece in unit.pieces():
            self.enter("src", piece.first_page, piece.folio)
            self.index("src", piece)

    def index(self, side: Side, unit: Unit) -> None:
        """Enter what is mapped there; source: linear_page_index(), include/linux/pagemap.h."""
        fields = self.fields(side)
        fields["index"][unit.first_page] = index_of(unit.first_slot, self._place)

    def leave(self, first_page: int, folio: Folio, reason: str, *, nr: int = 1) -> None:
        """Sources that nobody maps any more, and whose last reference is gone.

        Source: folio_migrate_flags(), migrate_folio_done(), mm/migrate.c; poisoned memory keeps
        its reference.
        """
        _, pages, second = self._folios("src", first_page, folio.order, nr)
        pages["flags"] &= ~self._flags("anon_exclusive")
        pages["flags"][:, 0] &= ~self._flags("active", "unevictable")
        if self._mlocked and folio.nr_entries:
            pages["flags"][:, 0] &= ~self._flags("mlocked")
        pages["_mapcount"] = -1
        pages["_refcount"][:, 0] = reason == "MEMORY_FAILURE"
        if second is not None:
            second["_large_mapcount"] = -1
            second["_entire_mapcount"] = -1
            second["_nr_pages_mapped"] = 0
            write_owners(second, owners_of([]), self._facts)
        self.dirty(first_page, folio, nr=nr)
        self.unlink("src", first_page, folio.order, nr=nr)

    def put_back(self, first_page: int, folio: Folio) -> None:
        """A source that was unmapped and is mapped again; an entry for bad memory stays.

        Source: migrate_folio_undo_src(), mm/migrate.c; munlock_vma_folio(), mm/internal.h.
        """
        self.dirty(first_page, folio)
        flags = self.fields("src")["flags"]
        if self._mlocked and folio.nr_entries:
            flags[first_page] &= ~self._flags("mlocked")
            if self._is_mlocked_again(folio):
                flags[first_page] |= self._flags("mlocked")
        if folio.is_broken:
            self.fields("src")["_mapcount"][first_page] = -1
            self.fields("src")["_refcount"][first_page] = folio.nr_held

    def _is_mlocked_again(self, folio: Folio) -> bool:
        """Whether one VMA maps all of it at once; of 6.12, whether it is small.

        What is left is for reclaim. Source: __folio_add_anon_rmap(), mm/rmap.c.
        """
        whole = folio.nr_huge if self._facts.get("MLOCKS_WHOLE_FOLIOS") else 0
        at_once = whole if folio.order else folio.nr_entries
        return self._mlocked and at_once > 0 and not folio.is_broken

    def dirty(self, first_page: int, folio: Folio, *, nr: int = 1) -> None:
        """Sources that were unmapped: dirty if an entry was; source: try_to_migrate_one()."""
        if folio.has_dirty_entry:
            _, pages, _ = self._folios("src", first_page, folio.order, nr)
            pages["flags"][:, 0] |= self._flags("dirty")

    def unlink(self, side: Side, first_page: int, order: int, *, nr: int = 1) -> None:
        """Take folios off the list they were on; source: list_del(), include/linux/list.h."""
        octets, _, _ = self._folios(side, first_page, order, nr)
        links = octets[:, 0].view(_link_dtype(self._facts, self._facts["page.lru"]))[..., 0]
        links["next"] = self._facts["LIST_POISON1"]
        links["prev"] = self._facts["LIST_POISON2"]

    def list_sources(self, heads: Iterable[int], call: int = 0) -> None:
        """Put sources on the list of the caller's first or of another call, in this order."""
        members: list[Member] = [("src", page) for page in heads]
        self._link(members, self._place.list + call * LIST_BYTES, self._facts["page.lru"])

    def queue(self, side: Side, members: Sequence[Member]) -> None:
        """Put folios on a node's queue of deferred splits, in this order.

        The flag is in the second page, the link in the third.
        Source: deferred_split_folio(), mm/huge_memory.c.
        """
        for where in SIDES:
            seconds = [
                page + 1
                for which, page in members
                if which == where and page not in self._underused
            ]
            self.fields(where)["flags"][seconds] |= self._flags("partially_mapped")
        queue = self._place.src_queue if side == "src" else self._place.dst_queue
        self._link([(where, page + 2) for where, page in members], queue, self._queue_offset)

    def unqueue(self, first_page: int) -> None:
        """A source that is on the queue no longer; source: list_del_init(), linux/list.h."""
        own = self._world("src").map + first_page * self._facts["sizeof.page"]
        own += self._facts["folio._deferred_list"]
        self._link([("src", first_page + 2)], own, self._queue_offset)

    @property
    def _queue_offset(self) -> int:
        """Offset of the deferred split queue's link within a folio's third descriptor."""
        return self._facts["folio._deferred_list"] - 2 * self._facts["sizeof.page"]

    def _link(self, members: Sequence[Member], head: int, offset: int) -> None:
        """A list of descriptors' links at an offset, behind a list head that is elsewhere."""
        at_dst = np.array([side == "dst" for side, _ in members], bool)
        pages = np.array([page for _, page in members], np.int64)
        around = np.full(len(members) + 2, head, np.uint64)
        around[1:-1] = pages * self._facts["sizeof.page"] + offset
        for side in SIDES:
            chosen = at_dst if side == "dst" else ~at_dst
            around[1:-1][chosen] += np.uint64(self._world(side).map)
        for side in SIDES:
            chosen = at_dst if side == "dst" else ~at_dst
            links = self.octets[side].reshape(-1).view(_link_dtype(self._facts, offset))
            links["prev"][pages[chosen]] = around[:-2][chosen]
            links["next"][pages[chosen]] = around[2:][chosen]

    def _folios(
        self, side: Side, first_page: int, order: int, nr: int
    ) -> tuple[Octets, NDArray[Any], NDArray[Any] | None]:
        """Shape (nr, pages of each, sizeof.page), the same as fields, and of second pages."""
        nr_each = 1 << order
        part = self.octets[side][first_page : first_page + nr * nr_each * self._spread]
        octets = part.reshape(nr, nr_each * self._spread, -1)[:, :nr_each]
        second = octets[:, 1].view(first_tail_dtype(self._facts))[..., 0] if order else None
        return octets, octets.view(page_dtype(self._facts))[..., 0], second

    def _flags(self, *names: str) -> np.uint64:
        return np.uint64(sum(1 << self._facts[f"PG_{name}"] for name in names))

    def _world(self, side: Side) -> mapping.Place:
        """The place as lay_out() wants it; no folio here is of a file."""
        place = self._place
        if side == "src":
            return mapping.Place(place.src_map, place.src_pfn, place.anon_vma, 0, place.src_nid)
        return mapping.Place(place.dst_map, place.dst_pfn, place.anon_vma, 0, place.dst_nid)


def _link_dtype(facts: Facts, offset: int) -> np.dtype[Any]:
    """A struct list_head of a descriptor."""
    return descriptor_dtype({"next": "<u8", "prev": "<u8"}, [offset, offset + 8], facts)


def laid_out(migration: Migration, facts: Facts, place: Place) -> Memory:
    """What migrate_pages() finds: sources isolated and listed, targets as they are allocated."""
    memory = Memory(
        *(migration.nr_pages, facts, place),
        spread=migration.spread,
        mlocked=migration.mlocked,
        underused=migration.underused,
    )
    for unit in migration.units:
        memory.enter("src", unit.first_page, unit.folio)
        memory.index("src", unit)
        if not migration.splits(unit.folio):
            memory.allocate(unit.first_page, unit.folio.order)
    memory.queue("src", [("src", page) for page in migration.waiting])
    for call, listed in enumerate(migration.calls):
        memory.list_sources((migration.first_page(number) for number in listed), call)
    return memory


def before(migration: Migration, facts: Facts, place: Place) -> State:
    """The same, with the entries of the page tables."""
    memory = laid_out(migration, facts, place)
    return State(memory.octets["src"], memory.octets["dst"], *tables(migration, facts, place))


def index_of(slot: int, place: Place) -> int:
    """folio->index of what is mapped there; source: linear_page_index(), linux/pagemap.h."""
    return (place.address >> PAGE_SHIFT) + slot


# --- Entries -----------------------------------------------------------------------------


def entry(bits: PteBits, pfn: int, facts: Facts, *, huge: bool = False) -> int:
    """The word that says so of a page."""
    features = Features.of(facts)
    word = pte.PRESENT | pte.USER | pte.NX | (PSE if huge else 0)
    word |= pte.ACCESSED * bits.young | pte.RW * bits.write
    if bits.dirty:
        word = pte.mkdirty(word, soft=False)
    word |= pte.SOFT_DIRTY * (bits.soft_dirty and features.soft_dirty)
    word |= pte.UFFD_WP * (bits.uffd_wp and features.uffd_wp)
    return pte.X86_64.encode(pfn, word)


def restored(word: int, pfn: int, facts: Facts, *, folio_is_dirty: bool) -> int:
    """The entry that takes the place of the migration entry that took the place of this one.

    Source: remove_migration_pte(), mm/migrate.c; what the migration entry keeps of the old entry
    is in try_to_migrate_one(), mm/rmap.c.
    """
    new = pte.X86_64.encode(pfn, PAGE_PROT)
    if not pte.young(word):
        new = pte.mkold(new)
    if folio_is_dirty and pte.dirty(word):
        new = pte.mkdirty(new, soft=Features.of(facts).soft_dirty)
    new = pte.clear_soft_dirty(new) | word & pte.SOFT_DIRTY
    if pte.write(word):
        return pte.mkwrite(new)
    return pte.mkuffd_wp(new) if pte.uffd_wp(word) else new


def restored_huge(word: int, pfn: int, facts: Facts, *, folio_is_dirty: bool) -> int:
    """The same of a huge entry, which x86 makes soft-dirty if it is dirty, whatever it was.

    Source: remove_migration_pmd(), mm/huge_memory.c.
    """
    new = pte.X86_64.encode(pfn, PAGE_PROT | PSE) | word & pte.SOFT_DIRTY
    if pte.write(word):
        new = pte.mkwrite(new)
    if pte.uffd_wp(word):
        new = pte.mkuffd_wp(new)
    if not pte.young(word):
        new = pte.mkold(new)
    if folio_is_dirty and pte.dirty(word):
        new = pte.mkdirty(new, soft=Features.of(facts).soft_dirty)
    return new


def broken(pfn: int, facts: Facts) -> int:
    """The entry that takes the place of one that mapped bad memory; try_to_migrate_one()."""
    return pte.swap_entry(facts["SWP_HWPOISON"], pfn)


def empty_tables(nr_mappings: int, nr_pmds: int) -> tuple[tuple[Words, ...], tuple[Words, ...]]:
    """Entries and huge entries of address spaces in which nothing is mapped."""
    entries = tuple(np.zeros(nr_pmds * PAGES_PER_PMD, np.uint64) for _ in range(nr_mappings))
    return entries, tuple(np.zeros(nr_pmds, np.uint64) for _ in range(nr_mappings))


def tables(
    migration: Migration, facts: Facts, place: Place
) -> tuple[tuple[Words, ...], tuple[Words, ...]]:
    """Entries and huge entries of every address space, before."""
    entries, pmds = empty_tables(migration.nr_mappings, migration.nr_pmds)
    for unit in migration.units:
        folio = unit.folio
        for space in range(folio.nr_mappings):
            is_huge = folio.is_huge_in(space)
            for page, bits in enumerate(folio.bits_in(space)):
                if bits is None:
                    continue
                pfn, slot = place.src_pfn + unit.first_page + page, unit.first_slot + page
                table = pmds[space] if is_huge else entries[space]
                table[slot // PAGES_PER_PMD if is_huge else slot] = entry(
                    bits, pfn, facts, huge=is_huge
                )
    return entries, pmds
