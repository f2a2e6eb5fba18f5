# SPDX-License-Identifier: GPL-2.0-only
"""Mappings that mix everything fork and unmap can meet, by seed."""

from collections.abc import Iterator
from dataclasses import replace

from ream.oracle import pte
from ream.oracle.dice import Dice
from ream.oracle.mapping import (
    MIGRATIONS,
    PAGE_SHIFT,
    PAGES_PER_PMD,
    PRIVATE,
    SHARED,
    WRITTEN,
    Folio,
    Kind,
    Mapping,
    NonPresent,
    Present,
    Slot,
    Special,
)

from .cases import (
    ADDRESS,
    CLEAN,
    MIGRATING,
    NUMA_HINT,
    ONE_PKEY,
    cached,
    owned,
    placed,
    with_spares,
)

MAX_PAGES = 700  # enough to lie in three page tables
SMALL_PAGES = 40


def random_mapping(seed: int) -> Mapping:
    """A mapping of 1 to 700 pages of folios up to order 5; the same for the same seed."""
    return _Mixture(Dice(seed)).mapping()


class _Mixture:
    """Draws a mapping piece by piece: holes, runs of a folio's pages, what is not present."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._shared = self._dice.happens(0.25)
        self._anonymous = not self._shared and self._dice.happens(0.7)
        self._uffd_wp = self._dice.happens(0.3)
        self._device = self._dice.happens(0.1)
        self._has_pinned = self._dice.happens(0.4)
        self._folios: list[Folio] = []
        self._rest: tuple[int, int] | None = None  # of a run that something else interrupted

    def mapping(self) -> Mapping:
        """Draw it all."""
        nr_pages = self._dice.number(1, SMALL_PAGES if self._dice.happens(0.6) else MAX_PAGES)
        slots: list[Slot] = []
        while len(slots) < nr_pages:
            slots.extend(self._piece())
        flags = set(SHARED if self._shared else PRIVATE)
        if self._dice.happens(0.5):
            flags.remove("SOFTDIRTY")
        if self._uffd_wp:
            flags.add("UFFD_WP")
        if self._device:
            flags.add("MIXEDMAP")
        mapping = Mapping(
            slots=tuple(slots[:nr_pages]),
            folios=placed(*self._folios),
            address=ADDRESS + (self._dice.number(0, 2 * PAGES_PER_PMD) << PAGE_SHIFT),
            flags=frozenset(flags),
            anonymous=self._anonymous,
            child_uffd_wp=self._uffd_wp and self._dice.happens(0.5),
            has_pinned=self._has_pinned,
        )
        return with_spares(mapping)

    def _piece(self) -> Iterator[Slot]:
        if self._dice.happens(0.12):
            return iter([None] * self._dice.number(1, 8))
        if self._dice.happens(0.12):
            return iter([self._nonpresent() for _ in range(self._dice.number(1, 4))])
        if self._device and self._dice.happens(0.1):
            return iter([Special()])
        return self._run()

    def _run(self) -> Iterator[Slot]:
        if self._rest is not None and self._dice.happens(0.7):
            number, first = self._rest
            self._rest = None
        else:
            number, first = len(self._folios), 0
            self._folios.append(self._folio())
            if self._dice.happens(0.3):
                first = self._dice.number(0, self._folios[number].nr_pages - 1)
        end = self._folios[number].nr_pages
        if self._dice.happens(0.3):
            end = self._dice.number(first + 1, end)
            if end < self._folios[number].nr_pages:
                # Most often the next page is lost, so that the run cannot go on as it was.
                self._rest = (number, end + self._dice.happens(0.5))
                if self._rest[1] == self._folios[number].nr_pages:
                    self._rest = None
        return iter(self._entries(number, first, end))

    def _folio(self) -> Folio:
        if self._shared or (not self._anonymous and self._dice.happens(0.6)):
            folio = cached(self._dice.number(0, 5), swapbacked=self._dice.happens(0.5))
        else:
            order = self._dice.one_of((0, 0, 2, 3, 4, 5))
            some = [page for page in range(1 << order) if self._dice.happens(0.7)]
            folio = owned(order, self._dice.one_of((None, None, some, ())))
            if not folio.exclusive:
                folio = replace(folio, mapped_elsewhere=self._dice.number(0, 2))
        if self._dice.happens(0.3):
            folio = replace(folio, pins=self._dice.number(1, 3))
        return replace(folio, extra_refs=folio.extra_refs + self._dice.number(0, 2))

    def _entries(self, number: int, first: int, end: int) -> Iterator[Present]:
        folio = self._folios[number]
        common = self._dice.one_of(
            (WRITTEN, WRITTEN, WRITTEN, CLEAN, NUMA_HINT, WRITTEN | ONE_PKEY)
        )
        changes = 0.15 if self._dice.happens(0.5) else 0.0
        for page in range(first, end):
            bits = common
            for toggled in (pte.ACCESSED, pte.SOFT_DIRTY):
                bits ^= toggled * self._dice.happens(changes)
            if self._dice.happens(changes):
                bits = pte.mkclean(bits) if pte.dirty(bits) else pte.mkdirty(bits, soft=False)
            if self._uffd_wp and self._dice.happens(changes):
                bits = pte.mkuffd_wp(bits)
            if self._dice.happens(changes) or not (self._shared or page in folio.exclusive):
                bits = pte.wrprotect(bits)
            yield Present(number, page, bits)

    def _nonpresent(self) -> NonPresent:
        kinds: tuple[Kind, ...] = ("marker-poisoned", "hwpoison", *MIGRATIONS)
        if not self._shared:
            kinds += ("swap", "swap-exclusive")
        if self._uffd_wp:
            kinds += ("marker-uffd-wp",)
        kind = self._dice.one_of(kinds)
        if kind in MIGRATIONS:
            return self._migrating(kind)
        if kind in {"swap", "swap-exclusive"}:
            return NonPresent(
                kind,
                offset=self._dice.number(0, 1 << 20),
                soft_dirty=self._dice.happens(0.3),
                uffd_wp=self._uffd_wp and self._dice.happens(0.3),
            )
        return NonPresent(kind, offset=self._dice.number(1, 1 << 20))

    def _migrating(self, kind: Kind) -> NonPresent:
        folio = cached(2) if self._shared else owned(2, ())
        self._folios.append(replace(folio, flags=MIGRATING, extra_refs=1))
        return NonPresent(
            kind,
            folio=len(self._folios) - 1,
            page=self._dice.number(0, 3),
            soft_dirty=self._dice.happens(0.3),
            uffd_wp=self._uffd_wp and self._dice.happens(0.3),
        )
