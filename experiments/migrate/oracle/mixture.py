# SPDX-License-Identifier: GPL-2.0-only
"""Migrations on which a kernel is judged: the edge of every rule by name, and mixtures by seed."""

from dataclasses import replace

from ream.oracle.dice import Dice

from .folios import (
    PMD_ORDER,
    READ_ONLY,
    REASONS,
    Folio,
    Migration,
    Mode,
    PteBits,
)

MAX_FOLIOS = 60
MAX_PAGES = 2500  # more than four batches

_SMALL = (0, 0, 0, 2, 2, 3, 4, 4, 5)
_MODES: tuple[Mode, ...] = ("async", "async", "sync_light", "sync")
ORDERS = (0, *range(2, PMD_ORDER + 1))
"""Orders of anonymous folios: none has two pages."""

CLEAN = PteBits(dirty=False)
OLD = PteBits(young=False)
MARKED = PteBits(soft_dirty=True)
OLD_AND_CLEAN = PteBits(young=False, dirty=False, write=False)
EXCLUSIVE_READ_ONLY = PteBits(write=False)
PROTECTED = PteBits(write=False, uffd_wp=True)
PROTECTED_SHARED = PteBits(write=False, exclusive=False, uffd_wp=True, soft_dirty=True)
EVERY_BITS = (
    *(PteBits(), CLEAN, OLD, MARKED, OLD_AND_CLEAN),
    *(EXCLUSIVE_READ_ONLY, PROTECTED, READ_ONLY, PROTECTED_SHARED),
)
"""Every kind of bits that an entry in one address space may have."""


def correctness_migrations() -> dict[str, Migration]:
    """Migrations by name; the name says what is at the edge."""
    return {
        **_of_every_order(),
        **_entries(),
        **_flags(),
        **_batches(),
        **_in_the_way(),
        **_modes_and_reasons(),
        **_mapped_unlike(),
        **split_migrations(),
    }


def _alone(folio: Folio, *, mode: Mode = "async", reason: str = "SYSCALL") -> Migration:
    return Migration((folio,), mode, reason)


def _of_every_order() -> dict[str, Migration]:
    huge = Folio(PMD_ORDER, mapped="pmd")
    return {
        **{f"order-{order}": Migration((Folio(order),) * 3) for order in ORDERS},
        **{
            f"order-{order}-two-mappings": Migration((Folio(order, (READ_ONLY,), nr_mappings=2),))
            for order in ORDERS
        },
        "huge-entry": Migration((huge, huge)),
        "huge-entry-two-mappings": _alone(replace(huge, ptes=(READ_ONLY,), nr_mappings=2)),
        "huge-entry-and-ptes": Migration((huge, Folio(PMD_ORDER), Folio(), huge, Folio(4))),
        "sizes-mixed": Migration(tuple(Folio(order) for order in (0, 4, 2, 0, 3, 9, 0, 5, 2))),
        "sizes-mixed-shuffled": Migration(
            tuple(Folio(order) for order in (0, 4, 2, 0, 3, 9, 0, 5, 2)),
            listed=(5, 3, 8, 0, 1, 7, 2, 6, 4),
        ),
        "one-space-of-two": Migration(
            (Folio(2), Folio(2, (READ_ONLY,), nr_mappings=2), Folio(), Folio(4))
        ),
    }


def _entries() -> dict[str, Migration]:
    pages = 16
    alternating = tuple(EVERY_BITS[page % len(EVERY_BITS)] for page in range(pages))
    return {
        **{
            f"bits-{at}-order-{order}": _alone(Folio(order, (bits,)))
            for at, bits in enumerate(EVERY_BITS)
            for order in (0, 4)
        },
        **{
            f"bits-{at}-huge-entry": _alone(Folio(PMD_ORDER, (bits,), "pmd"))
            for at, bits in enumerate(EVERY_BITS)
        },
        "bits-of-every-page": _alone(Folio(4, alternating)),
        "one-exclusive": _alone(Folio(4, (READ_ONLY,) * 6 + (PteBits(),) + (READ_ONLY,) * 9)),
        "one-dirty": _alone(Folio(4, (OLD_AND_CLEAN,) * 15 + (PteBits(),))),
        "across-page-tables": Migration((*((Folio(),) * 509), Folio(4, aligned=False), Folio())),
        "huge-folio-unaligned": Migration((Folio(), Folio(PMD_ORDER, aligned=False), Folio(2))),
    }


def _flags() -> dict[str, Migration]:
    flags = ("referenced", "active", "unevictable", "dirty", "workingset", "mlocked")
    return {
        **{
            f"{name}-order-{order}": _alone(Folio(order, flags=frozenset({"uptodate", name})))
            for name in flags
            for order in (0, 4)
        },
        "clean-folio": _alone(Folio(4, (CLEAN,))),
        "dirty-folio-clean-entry": _alone(
            Folio(2, (CLEAN, OLD, CLEAN, CLEAN), flags=frozenset({"uptodate", "dirty"}))
        ),
        "not-uptodate": _alone(Folio(flags=frozenset())),
        "lazily-freed": Migration(
            (Folio(2, (CLEAN,), swapbacked=False), Folio(0, (CLEAN,), swapbacked=False))
        ),
    }


def _batches() -> dict[str, Migration]:
    small, huge = Folio(), Folio(PMD_ORDER)
    locked, held = Folio(fault="locked"), Folio(fault="extra-ref")
    many, more = (Folio(3),) * 99, (Folio(3),) * 26
    return {
        # A batch leaves what is held before what is locked: so it shows where one ends.
        "batch-of-few-folios": Migration((locked, *(Folio(5),) * 20, held)),
        "batches-of-many-folios": Migration((locked, *many, held, *more, locked, held)),
        "batches-of-many-pages": Migration((locked, *(huge,) * 8, held)),
        "batch-just-full": Migration((small,) * 512),
        "batch-and-one": Migration((small,) * 513),
        "batch-overfull": Migration((small,) * 511 + (huge, small)),
        "batches-of-huge-folios": Migration((small,) * 5 + (huge,) * 3),
    }


def _in_the_way() -> dict[str, Migration]:
    faults = {name: Folio(fault=name) for name in ("locked", "extra-ref", "writeback", "no-target")}
    faults["poison"] = Folio(fault="poison:0")
    faults["freed"] = Folio(mapped="unmapped", fault="freed")
    faults["unmapped-extra-ref"] = Folio(mapped="unmapped", fault="extra-ref")
    around = (Folio(), Folio(2))
    large = {
        "locked": Folio(4, fault="locked"),
        "extra-ref": Folio(4, fault="extra-ref"),
        "writeback": Folio(4, fault="writeback"),
        "poison-first": Folio(4, fault="poison:0"),
        "poison-last": Folio(4, fault="poison:15"),
        "freed": Folio(4, mapped="unmapped", fault="freed", flags=frozenset({"active"})),
        "huge-extra-ref": Folio(PMD_ORDER, mapped="pmd", fault="extra-ref"),
        "huge-poison": Folio(PMD_ORDER, mapped="pmd", fault="poison:77"),
        "huge-ptes-extra-ref": Folio(PMD_ORDER, fault="extra-ref"),
        "huge-freed": Folio(PMD_ORDER, mapped="unmapped", fault="freed"),
    }
    every = (
        *(faults["locked"], Folio(), faults["poison"], large["extra-ref"], faults["writeback"]),
        *(Folio(3), faults["freed"], faults["extra-ref"], Folio(5), large["poison-last"]),
    )
    return {
        **{f"{name}-alone": _alone(folio) for name, folio in faults.items()},
        **{f"{name}-in-between": Migration((*around, folio, *around)) for name, folio in
           faults.items()},
        **{f"{name}-large": Migration((*around, folio, *around)) for name, folio in
           large.items()},
        "everything-in-the-way": Migration(every),
        "no-target-after-everything": Migration((*every, faults["no-target"], Folio())),
        "no-target-in-second-batch": Migration(
            (Folio(),) * 520 + (faults["no-target"],) + (Folio(),) * 3
        ),
        "no-target-for-huge": _alone(
            Folio(PMD_ORDER, fault="no-target"), reason="NUMA_MISPLACED"
        ),
    }  # fmt: skip


def _modes_and_reasons() -> dict[str, Migration]:
    mixed = (
        *(Folio(), Folio(4, fault="extra-ref"), Folio(2), Folio(fault="poison:0")),
        *(Folio(PMD_ORDER, mapped="pmd", fault="extra-ref"), Folio(fault="extra-ref"), Folio(3)),
    )
    light = (
        *(Folio(), Folio(fault="writeback"), Folio(2), Folio(4, fault="locked", flags=frozenset())),
        *(Folio(fault="extra-ref"), Folio(fault="locked", flags=frozenset()), Folio(2)),
    )
    plain = (Folio(), Folio(4), Folio(mapped="unmapped", fault="freed"))
    return {
        "sync": Migration(mixed, "sync"),
        "sync-light": Migration(light, "sync_light"),
        "sync-no-target": Migration((*mixed, Folio(fault="no-target"), Folio()), "sync"),
        "sync-plain": Migration(plain, "sync"),
        **{f"reason-{reason}": Migration(plain, reason=reason) for reason in REASONS},
    }


def _mapped_unlike() -> dict[str, Migration]:
    """Two address spaces that do not map the same, and what may not be unmapped or has no page."""
    small = Folio(0, (READ_ONLY,))
    shared = Folio(4, (READ_ONLY,), nr_mappings=2)
    both = Folio(PMD_ORDER, (READ_ONLY,), "both", nr_mappings=2)
    huge = Folio(PMD_ORDER, mapped="pmd", underused=True)
    exclusive = PteBits(dirty=False)
    pinned = [Folio(order, (exclusive,), fault="pinned") for order in (0, 4)]
    pinned.append(Folio(PMD_ORDER, (exclusive,), "pmd", fault="pinned"))
    broken = replace(small, flags=frozenset({"uptodate", "hwpoison"}))
    locked = [Folio(order, flags=frozenset({"uptodate", "mlocked"})) for order in (0, 0, 4)]
    locked.append(Folio(PMD_ORDER, mapped="pmd", flags=frozenset({"uptodate", "mlocked"})))
    held = [replace(folio, fault="extra-ref") for folio in locked]
    return {
        "hole-in-the-middle": _alone(replace(shared, holes=frozenset({5, 6}))),
        "holes-at-the-ends": _alone(replace(shared, holes=frozenset({0, 1, 15}))),
        "hole-extra-ref": _alone(replace(shared, holes=frozenset({3}), fault="extra-ref")),
        "ptes-and-huge-entry": Migration((both, Folio(2), both)),
        "ptes-and-huge-entry-sync": _alone(both, mode="sync"),
        "ptes-and-huge-entry-extra-ref": _alone(replace(both, fault="extra-ref")),
        "small-shared-by-turns": Migration((small, replace(small, nr_mappings=2)) * 3),
        "underused-alone": _alone(huge),
        "underused": Migration((huge, Folio(4), huge)),
        "underused-extra-ref": _alone(replace(huge, fault="extra-ref")),
        **{
            f"pinned-{at}-{mode}": Migration((Folio(), folio, Folio(2)), mode)
            for at, folio in enumerate(pinned)
            for mode in ("async", "sync_light", "sync")
        },
        "hwpoison": Migration((small, broken, small)),
        "hwpoison-two-mappings": _alone(replace(broken, nr_mappings=2)),
        "hwpoison-extra-ref": Migration((small, replace(broken, fault="extra-ref"), small)),
        "mlocked-memory": Migration((Folio(), *locked), mlocked=True),
        "mlocked-memory-extra-ref": Migration((Folio(fault="extra-ref"), *held), mlocked=True),
    }


def split_migrations() -> dict[str, Migration]:
    """Migrations by name in which folios are split first; what hosts them has to be able to."""
    every_other = (PteBits(), None) * 8
    lonely = (None,) * 3 + (READ_ONLY,)
    flags = frozenset({"uptodate", "active", "workingset", "mlocked"})
    partial = Folio(4, every_other, fault="partially-mapped")
    homeless = Folio(4, fault="no-target")
    every = (Folio(), partial, Folio(2), homeless, Folio(fault="extra-ref"), Folio(3))
    huge = Folio(PMD_ORDER, fault="no-target")
    return {
        "partially-mapped": _alone(partial),
        "one-page-mapped": _alone(Folio(2, lonely, fault="partially-mapped", nr_mappings=2)),
        "split-flags": _alone(replace(partial, flags=flags, swapbacked=False)),
        "split-clean": _alone(replace(partial, order=2, ptes=(CLEAN, None, OLD_AND_CLEAN, OLD))),
        "no-large-target": _alone(homeless),
        "no-huge-target": Migration((Folio(), huge, Folio())),
        "splits-among-others": Migration(every),
        "splits-sync": Migration(every, "sync"),
        "splits-then-no-target": Migration((*every, Folio(fault="no-target"), Folio())),
        "splits-then-no-target-sync": Migration((*every, Folio(fault="no-target")), "sync"),
        "splits-two-batches": Migration((*every, huge, *every)),
    }


def mixture(
    seed: int,
    *,
    nr_folios: int | None = None,
    faults: bool = True,
    splits: bool = False,
    most_pages: int = MAX_PAGES,
) -> Migration:
    """A migration of folios of all sizes; the same for the same seed and arguments.

    nr_folios: how many, if it does not matter 1 to 60; fewer if most_pages are full before.
    faults: whether some cannot be moved. splits: whether some are split before.
    """
    return _Mixture(Dice(seed), faults=faults, splits=splits).migration(nr_folios, most_pages)


class _Mixture:
    """Draws a migration folio by folio."""

    def __init__(self, dice: Dice, *, faults: bool, splits: bool) -> None:
        self._dice = dice
        self._splits = splits
        self._mode = self._dice.one_of(_MODES)
        self._reason = self._dice.one_of(REASONS)
        self._fault_ratio = self._dice.one_of((0.0, 0.1, 0.4)) if faults else 0.0
        self._ends = faults and self._dice.happens(0.2)
        self._two_spaces = self._dice.happens(0.5)
        self._uniform_bits = self._dice.happens(0.5)

    def migration(self, nr_folios: int | None, most_pages: int) -> Migration:
        """Draw it all."""
        if nr_folios is None:
            nr_folios = self._dice.number(1, MAX_FOLIOS)
        folios: list[Folio] = []
        nr_pages = 0
        while len(folios) < nr_folios:
            folio = self._folio(most_pages - nr_pages)
            # A folio is aligned to its size, which may cost as much again.
            nr_pages += 2 * folio.nr_pages if folio.order else 1
            if nr_pages > most_pages and folios:
                break
            folios.append(folio)
        if self._ends:
            at = self._dice.number(0, len(folios) - 1)
            folios[at] = Folio(fault="no-target")
        listed = None
        if self._dice.happens(0.5):
            listed = tuple(self._dice.rng.permutation(len(folios)).tolist())
        return Migration(
            tuple(folios),
            self._mode,
            self._reason,
            listed=listed,
        )

    def _folio(self, most_pages: int) -> Folio:
        order = self._dice.one_of(_SMALL)
        if self._dice.happens(0.1) and most_pages >= 2 << PMD_ORDER:
            order = self._dice.one_of((6, 7, 8, PMD_ORDER, PMD_ORDER))
        is_huge = order == PMD_ORDER and self._dice.happens(0.6)
        nr_mappings = 2 if self._two_spaces and self._dice.happens(0.4) else 1
        folio = Folio(
            order,
            self._bits(1 if is_huge else 1 << order, nr_mappings),
            "pmd" if is_huge else "ptes",
            self._flags(),
            swapbacked=not self._dice.happens(0.1),
            nr_mappings=nr_mappings,
            aligned=is_huge or not self._dice.happens(0.2),
            underused=is_huge and nr_mappings == 1 and self._dice.happens(0.3),
        )
        if nr_mappings > 1:
            folio = self._mapped_unlike(folio)
        if self._splits and folio.queues and self._dice.happens(0.3):
            return self._to_be_split(folio)
        return self._hindered(folio) if self._dice.happens(self._fault_ratio) else folio

    def _mapped_unlike(self, folio: Folio) -> Folio:
        """The second address space may have huge entries of its own, or holes."""
        if folio.mapped == "pmd" and self._dice.happens(0.5):
            return replace(folio, mapped="both")
        if folio.mapped == "ptes" and folio.order and self._dice.happens(0.3):
            first = self._dice.number(0, folio.nr_pages - 1)
            last = self._dice.number(first, folio.nr_pages - 1)
            holes = frozenset(range(first, last + 1))
            return replace(folio, holes=holes - {0} if len(holes) == folio.nr_pages else holes)
        return folio

    def _to_be_split(self, folio: Folio) -> Folio:
        if self._dice.happens(0.4):
            return replace(folio, fault="no-target")
        pages = [bits if self._dice.happens(0.6) else None for bits in folio.bits]
        pages[self._dice.number(0, folio.nr_pages // 2 - 1)] = None
        pages[-1] = folio.bits[-1]
        return replace(folio, ptes=tuple(pages), fault="partially-mapped")

    def _bits(self, nr: int, nr_mappings: int) -> tuple[PteBits, ...]:
        known = [bits for bits in EVERY_BITS if nr_mappings == 1 or not bits.exclusive]
        if self._uniform_bits:
            return (self._dice.one_of(known),)
        return tuple(self._dice.one_of(known) for _ in range(nr))

    def _flags(self) -> frozenset[str]:
        flags = {
            name
            for name in ("referenced", "dirty", "workingset", "mlocked")
            if self._dice.happens(0.2)
        }
        flags |= (
            {self._dice.one_of(("active", "unevictable"))} if self._dice.happens(0.3) else set()
        )
        return frozenset(flags | ({"uptodate"} if self._dice.happens(0.9) else set()))

    def _hindered(self, folio: Folio) -> Folio:
        """Something in its way that can be in this mode."""
        if self._dice.happens(0.15):
            return replace(
                folio, mapped="unmapped", ptes=(PteBits(),), nr_mappings=1,
                holes=frozenset(), underused=False,
                fault=self._dice.one_of(("freed", "freed", "extra-ref")),
            )  # fmt: skip
        if folio.nr_mappings == 1 and self._dice.happens(0.15):
            return replace(folio, ptes=(CLEAN,), fault="pinned")
        faults = ["extra-ref"]
        if self._mode == "async" or not folio.may_queue:
            faults.append(f"poison:{self._dice.number(0, folio.nr_pages - 1)}")
        if self._mode != "sync":
            faults.append("writeback")
        if self._mode == "async" or (self._mode == "sync_light" and "uptodate" not in folio.flags):
            faults.append("locked")
        return replace(folio, fault=self._dice.one_of(faults))
