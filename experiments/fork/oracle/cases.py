# SPDX-License-Identifier: GPL-2.0-only
"""Mappings on which fork and unmap are judged: the edge of every rule, by name."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from ream.oracle import pte
from ream.oracle.mapping import (
    DEVICE_EXCLUSIVE,
    DEVICE_PRIVATE,
    MIGRATIONS,
    PAGE_SHIFT,
    PAGES_PER_PMD,
    PRIVATE,
    SHARED,
    WRITTEN,
    Folio,
    Mapping,
    NonPresent,
    Present,
    Slot,
    Special,
)

ADDRESS = 1 << 40  # of a page table's first entry

READ_ONLY = pte.wrprotect(WRITTEN)
CLEAN = pte.mkclean(READ_ONLY)
OLD = pte.mkold(WRITTEN)
NUMA_HINT = pte.PROTNONE | pte.ACCESSED | pte.SAVED_DIRTY
ONE_PKEY = 1 << 59
UFFD_PROTECTED = pte.mkuffd_wp(WRITTEN)

FILE = frozenset({"uptodate", "lru", "referenced"})
MIGRATING = frozenset({"uptodate", "locked"})

ANON_ORDERS = (0, 2, 3, 4, 5, 6, 7, 8, 9)  # the kernel makes no anonymous folios of order 1
FILE_ORDERS = tuple(range(10))

_NO_PIN_BELOW = 1023
"""References of a small folio with which fork does not take it for pinned, its own included."""


def correctness_mappings() -> dict[str, Mapping]:
    """Mappings by name; the name says what is at the edge."""
    return {
        **_of_every_order(),
        **_where_batches_end(),
        **_where_they_lie(),
        **_soft_dirty(),
        **_uffd_wp(),
        **_pinned(),
        **_files(),
        **_not_present(),
    }


def placed(*folios: Folio) -> tuple[Folio, ...]:
    """The same folios side by side, each aligned to its size."""
    end = 0
    result = []
    for folio in folios:
        first_page = -(-end // folio.nr_pages) * folio.nr_pages
        result.append(replace(folio, first_page=first_page))
        end = first_page + folio.nr_pages
    return tuple(result)


def owned(order: int, pages: Iterable[int] | None = None, *, pins: int = 0) -> Folio:
    """An anonymous folio some pages of which, by default all, belong to its process alone."""
    exclusive = frozenset(range(1 << order) if pages is None else pages)
    return Folio(order, 0, exclusive=exclusive, pins=pins)


def cached(order: int, *, swapbacked: bool = False) -> Folio:
    """A folio of a file, or of shared memory, that the page cache holds as well."""
    refs = 1 << order
    return Folio(order, 0, anon=False, swapbacked=swapbacked, extra_refs=refs, flags=FILE)


def run(folio: int, pages: Iterable[int], *bits: int) -> tuple[Present, ...]:
    """Entries of one folio; their bits in turn, the last ones repeated; none: WRITTEN."""
    of_each = bits or (WRITTEN,)
    last = len(of_each) - 1
    return tuple(Present(folio, page, of_each[min(at, last)]) for at, page in enumerate(pages))


def with_spares(mapping: Mapping) -> Mapping:
    """The mapping with as many spare pages as two forks can take, and one to be put back."""
    if not mapping.has_pinned:
        return mapping
    copied = sum(
        slot.page in mapping.folios[slot.folio].exclusive
        for slot in mapping.slots
        if isinstance(slot, Present)
    )
    return replace(mapping, nr_spares=2 * copied + 1)


def _of_every_order() -> dict[str, Mapping]:
    anon = {
        f"anon-order-{order}": Mapping(
            slots=run(1, range(1 << order)) + run(0, range(1 << order)),
            folios=placed(owned(order), owned(order)),
        )
        for order in ANON_ORDERS
    }
    private_file = {
        f"private-file-order-{order}": Mapping(
            slots=run(0, range(1 << order), CLEAN) + run(1, range(1 << order), CLEAN),
            folios=placed(cached(order), cached(order)),
            anonymous=False,
        )
        for order in FILE_ORDERS
    }
    return anon | private_file


def _where_batches_end() -> dict[str, Mapping]:
    """All of one folio of order 4, unless it is said to be otherwise."""
    folio = placed(owned(4))
    few_exclusive = placed(owned(4, (0, 1, 5, 6, 7, 11)))
    pages = range(16)
    writable_where_exclusive = tuple(
        Present(0, page, WRITTEN if page in few_exclusive[0].exclusive else READ_ONLY)
        for page in pages
    )
    ages = tuple(Present(0, page, WRITTEN if page % 3 else OLD) for page in pages)
    clean_but_writable = pte.mkclean(WRITTEN)
    one_clean = ages[:7] + run(0, [7], clean_but_writable) + ages[8:]
    changed = {
        "a-pkey": WRITTEN | ONE_PKEY,
        "nx": WRITTEN & ~pte.NX,
        "pwt": WRITTEN | pte.PWT,
        "pat": WRITTEN | pte.PAT,
        "protnone": NUMA_HINT,
    }
    return {
        "young-and-old": Mapping(ages, folio),
        "one-clean-private": Mapping(one_clean, folio),
        **{
            # Of four entries that are compared at a time it is another one each time.
            f"alike-but-{at}-clean": Mapping(
                run(0, pages[:at], WRITTEN)
                + run(0, [at], clean_but_writable)
                + run(0, pages[at + 1 :], WRITTEN),
                folio,
            )
            for at in (3, 6, 9, 12)
        },
        "read-only-and-writable": Mapping(writable_where_exclusive, few_exclusive),
        "read-only-first": Mapping(
            run(0, pages, READ_ONLY, READ_ONLY, WRITTEN), placed(owned(4, range(2, 16)))
        ),
        "writable-first": Mapping(run(0, pages, WRITTEN, READ_ONLY), placed(owned(4, [0]))),
        "clean-and-dirty-alternate": Mapping(
            tuple(Present(0, page, CLEAN if page % 2 else READ_ONLY) for page in pages),
            placed(owned(4)),
        ),
        "no-bit-exclusive": Mapping(
            run(0, pages, READ_ONLY), placed(replace(owned(4, ()), mapped_elsewhere=1))
        ),
        "exclusive-in-part": Mapping(run(0, pages, READ_ONLY), placed(owned(4, (0, 3, 4, 15)))),
        "executable": Mapping(run(0, pages, WRITTEN & ~pte.NX), folio, flags=PRIVATE | {"EXEC"}),
        "protnone-all": Mapping(run(0, pages, NUMA_HINT), folio, flags=PRIVATE - {"READ", "WRITE"}),
        "protnone-two-folios": Mapping(
            run(1, range(4), NUMA_HINT) + run(0, pages, NUMA_HINT), placed(owned(4), owned(2))
        ),
        "never-writable": Mapping(run(0, pages), folio, flags=PRIVATE - {"WRITE", "MAYWRITE"}),
        **{
            f"{name}-changes": Mapping(run(0, pages, *[WRITTEN] * 6, bits), folio)
            for name, bits in changed.items()
        },
    }


def _where_they_lie() -> dict[str, Mapping]:
    """Holes, foreign pages, ends of folios, of page tables and of the VMA."""
    small = owned(0)
    five_before_pmd = ADDRESS + (PAGES_PER_PMD - 5 << PAGE_SHIFT)
    huge = tuple(range(PAGES_PER_PMD))
    return {
        "from-page-3-of-16": Mapping(run(0, range(3, 16)) + run(1, [0]), placed(owned(4), small)),
        "only-the-first-half": Mapping(run(0, range(8)), placed(owned(4))),
        "half-unmapped": Mapping((None,) * 8 + run(0, range(8, 16)), placed(owned(4))),
        "holes": Mapping(
            (None, *run(0, range(1, 5)), None, None, *run(0, range(7, 15)), None),
            placed(owned(4)),
        ),
        "one-page-replaced": Mapping(
            run(0, range(6), READ_ONLY) + run(1, [0]) + run(0, range(7, 16), READ_ONLY),
            placed(replace(owned(4, ()), mapped_elsewhere=2), small),
        ),
        "backwards": Mapping(run(0, reversed(range(16))), placed(owned(4))),
        "every-other-page": Mapping(run(0, range(0, 16, 2)), placed(owned(4))),
        "small-among-large": Mapping(
            run(1, [0]) + run(0, range(4)) + run(3, [0]) + run(2, range(8)),
            placed(owned(2), small, owned(3), small),
        ),
        "folios-side-by-side": Mapping(
            run(0, range(4)) + run(1, range(4)) + run(2, range(4)),
            placed(owned(2), owned(2), owned(2)),
        ),
        "one-page": Mapping(run(0, [9]), placed(owned(4))),
        "nothing": Mapping((None,) * 20, placed(small)),
        "across-a-pmd": Mapping(
            run(0, range(16)) + run(1, range(4)),
            placed(owned(4), owned(2)),
            address=five_before_pmd,
        ),
        "last-page-of-a-pmd": Mapping(
            run(0, range(16)), placed(owned(4)), address=ADDRESS + (PAGES_PER_PMD - 1 << PAGE_SHIFT)
        ),
        "huge-folios-unaligned": Mapping(
            run(0, huge) + run(1, huge) + run(2, range(100, 300)),
            placed(owned(9), owned(9), owned(9)),
            address=ADDRESS + (200 << PAGE_SHIFT),
        ),
        "mapped-by-others": Mapping(
            run(0, range(4, 12), READ_ONLY),
            placed(replace(owned(4, ()), mapped_elsewhere=3, extra_refs=2)),
        ),
        "device": Mapping(
            (Special(), *run(0, range(4)), Special(pfn=7), None, *run(0, range(6, 16))),
            placed(owned(4)),
            flags=PRIVATE | {"MIXEDMAP"},
        ),
    }


def _soft_dirty() -> dict[str, Mapping]:
    marked = WRITTEN | pte.SOFT_DIRTY
    folio, pages = placed(owned(4)), range(16)
    first_marked = run(0, pages, *[marked] * 5, WRITTEN)
    first_not = run(0, pages, *[WRITTEN] * 5, marked)
    tracked = PRIVATE - {"SOFTDIRTY"}
    return {
        "soft-dirty-untracked": Mapping(first_marked, folio),
        "soft-dirty-untracked-first-not": Mapping(first_not, folio),
        "soft-dirty-tracked": Mapping(first_marked, folio, flags=tracked),
        "soft-dirty-tracked-first-not": Mapping(first_not, folio, flags=tracked),
    }


def _uffd_wp() -> dict[str, Mapping]:
    folio, pages = placed(owned(4)), range(16)
    slots = run(0, pages, *[READ_ONLY] * 3, *[UFFD_PROTECTED] * 6, READ_ONLY)
    flags = PRIVATE | {"UFFD_WP"}
    shmem = placed(cached(4, swapbacked=True))
    return {
        "uffd-wp-child-protected": Mapping(slots, folio, flags=flags, child_uffd_wp=True),
        "uffd-wp-child-not": Mapping(slots, folio, flags=flags),
        "uffd-wp-left-over": Mapping(slots, folio),
        "uffd-wp-shmem-child-protected": Mapping(
            slots,
            shmem,
            flags=SHARED | {"UFFD_WP"},
            anonymous=False,
            child_uffd_wp=True,
            has_anon_vma=False,
        ),
        "uffd-wp-shmem-child-not": Mapping(
            slots, shmem, flags=SHARED | {"UFFD_WP"}, anonymous=False
        ),
    }


def _crowded() -> dict[str, Mapping]:
    """Pages of so many references that they pass for pinned, or nearly so."""
    crowd = _NO_PIN_BELOW - 1  # and the entry that maps it
    folios = {
        "many-references-not-yet": replace(owned(0), extra_refs=crowd - 1),
        "many-references-as-a-pin": replace(owned(0), extra_refs=crowd),
        "many-references-large": replace(owned(4), extra_refs=2 * crowd),
    }
    return {
        name: Mapping(run(0, range(1 << folio.order)), placed(folio))
        for name, folio in folios.items()
    }


def _pinned() -> dict[str, Mapping]:
    pages = range(16)
    one_of_16 = run(0, pages, *[READ_ONLY] * 6, WRITTEN, READ_ONLY)
    pinned = placed(owned(4, pins=1))
    uffd = PRIVATE | {"UFFD_WP"}
    cases = {
        "pinned-one-exclusive": Mapping(one_of_16, placed(owned(4, [6], pins=1))),
        "pinned-all-exclusive": Mapping(run(0, pages), pinned),
        "pinned-first-exclusive": Mapping(
            run(0, pages, WRITTEN, READ_ONLY), placed(owned(4, [0], pins=2))
        ),
        "pinned-last-exclusive": Mapping(
            run(0, pages, *[READ_ONLY] * 15, WRITTEN), placed(owned(4, [15], pins=2))
        ),
        "pinned-not-exclusive": Mapping(run(0, pages, READ_ONLY), placed(owned(4, (), pins=3))),
        "pinned-small": Mapping(
            run(0, [0]) + run(1, [0]) + run(2, [0], READ_ONLY),
            placed(owned(0, pins=1), owned(0), owned(0, (), pins=1)),
        ),
        "pinned-among-others": Mapping(
            run(0, range(4)) + run(1, range(8)) + run(2, range(4)),
            placed(owned(2), owned(3, range(2, 5), pins=1), owned(2)),
        ),
        "pinned-across-a-pmd": Mapping(
            run(0, pages),
            placed(owned(4, range(4, 8), pins=1)),
            address=ADDRESS + (PAGES_PER_PMD - 5 << PAGE_SHIFT),
        ),
        "pinned-read-only-vma": Mapping(
            run(0, range(4), READ_ONLY), placed(owned(2, pins=1)), flags=PRIVATE - {"WRITE"}
        ),
        "pinned-protnone": Mapping(
            run(0, range(4), NUMA_HINT),
            placed(owned(2, pins=1)),
            flags=PRIVATE - {"READ", "WRITE"},
        ),
        "pinned-uffd-wp-child-protected": Mapping(
            run(0, range(4), WRITTEN, UFFD_PROTECTED),
            placed(owned(2, pins=1)),
            flags=uffd,
            child_uffd_wp=True,
        ),
        "pinned-uffd-wp-child-not": Mapping(
            run(0, range(4), UFFD_PROTECTED, WRITTEN), placed(owned(2, pins=1)), flags=uffd
        ),
        "pinned-in-private-file": Mapping(
            run(0, range(4), CLEAN) + run(1, [0]) + run(0, range(5, 16), CLEAN),
            placed(replace(cached(4), pins=1), owned(0, pins=1)),
            anonymous=False,
        ),
        **_crowded(),
    }
    cases = {name: with_spares(replace(case, has_pinned=True)) for name, case in cases.items()}
    return cases | {"pinned-by-nobody-here": Mapping(run(0, pages), pinned)}


def _in_three_batches() -> Mapping:
    """A page table's dirty pages, of which mmu_gather has noted some when its memory is full."""
    clean, dirty = range(300), range(300, 300 + PAGES_PER_PMD)
    return Mapping(
        slots=tuple(Present(page, 0, CLEAN) for page in clean)
        + tuple(Present(page, 0) for page in dirty),
        folios=placed(*[cached(0, swapbacked=True)] * (len(clean) + len(dirty))),
        address=ADDRESS + (PAGES_PER_PMD - len(clean) << PAGE_SHIFT),
        flags=SHARED,
        anonymous=False,
    )


def _files() -> dict[str, Mapping]:
    pages = range(16)
    mixed = tuple(Present(0, page, pte.mkwrite(CLEAN) if page % 4 else READ_ONLY) for page in pages)
    old_and_clean = run(0, pages, pte.mkold(CLEAN))
    shmem, regular = placed(cached(4, swapbacked=True)), placed(cached(4))
    two = placed(cached(3), cached(1))

    def shared(slots: tuple[Slot, ...], folios: tuple[Folio, ...], **more: bool) -> Mapping:
        return Mapping(slots, folios, flags=SHARED, anonymous=False, **more)

    return {
        "shared-shmem-mixed": shared(mixed, shmem),
        "shared-file-mixed": shared(mixed, regular),
        "shared-file-writable": shared(run(0, pages), regular),
        "shared-file-old-and-clean": shared(old_and_clean, regular),
        "shared-file-two-folios": shared(run(1, range(2)) + run(0, range(1, 8), CLEAN), two),
        "shared-file-order-0": shared(
            run(0, [0]) + run(1, [0], CLEAN), placed(cached(0), cached(0))
        ),
        "shared-file-left-to-faults": shared(mixed, regular, has_anon_vma=False),
        "shared-file-page-mapped-twice": shared(
            run(0, range(4)) + run(0, range(4), CLEAN), regular
        ),
        "private-shmem-read-only": Mapping(run(0, pages, CLEAN), shmem, anonymous=False),
        "private-file-written-in-part": Mapping(
            run(0, range(4), CLEAN) + run(1, range(4)) + run(0, range(8, 16), CLEAN),
            placed(cached(4), owned(2)),
            anonymous=False,
        ),
        "shared-shmem-dirty-in-three-batches": _in_three_batches(),
        "private-file-behind-own-pages": Mapping(
            run(0, range(4)) + run(1, range(4, 12), CLEAN),
            placed(owned(4, range(4)), cached(4)),
            anonymous=False,
        ),
        **{
            f"private-file-mapped-to-disk-order-{order}": Mapping(
                run(0, range(1 << order), CLEAN),
                # PG_mappedtodisk, which is the bit PG_anon_exclusive.
                placed(replace(cached(order), flags=FILE | {"anon_exclusive"})),
                anonymous=False,
            )
            for order in (0, 4)
        },
        "read-in-order": Mapping(
            run(0, pages), regular, flags=SHARED | {"SEQ_READ"}, anonymous=False
        ),
    }


def _of_devices() -> dict[str, Mapping]:
    """Pages that a device has in its memory, or works on alone; each a folio of its own."""
    marks: tuple[dict[str, bool], ...] = ({}, {"uffd_wp": True}, {"soft_dirty": True})
    private: tuple[Slot, ...] = tuple(
        NonPresent(kind, folio=at, **marks[at % 2])
        for at, kind in enumerate((*DEVICE_PRIVATE, *reversed(DEVICE_PRIVATE)))
    )
    exclusive: tuple[Slot, ...] = tuple(
        NonPresent(kind, folio=at, **mark)
        for at, (kind, mark) in enumerate(product(DEVICE_EXCLUSIVE, marks))
    )
    # Writable again only as far as the page's bits allow, and nobody else maps it.
    still_mapped = {
        (own, dirty, mark): NonPresent("device-exclusive", folio=at, **marks[mark])
        for at, (own, dirty, mark) in enumerate(product((True, False), (True, False), range(3)))
    }
    owners = [owned(0) for _ in private]
    worked_on = [owned(0, ()) for _ in exclusive]
    holders = [
        replace(held, flags=held.flags | ({"dirty"} if dirty else set()))
        for own, dirty, _ in still_mapped
        for held in (owned(0, (0,) if own else ()),)
    ]
    return {
        "device-private": Mapping(private, placed(*owners)),
        "device-exclusive": Mapping(exclusive, placed(*worked_on)),
        "device-exclusive-mapped": Mapping(tuple(still_mapped.values()), placed(*holders)),
        "device-exclusive-mapped-uffd-wp": Mapping(
            tuple(still_mapped.values()), placed(*holders), flags=PRIVATE | {"UFFD_WP"}
        ),
        "device-exclusive-mapped-soft-dirty": Mapping(
            tuple(still_mapped.values()), placed(*holders), flags=PRIVATE - {"SOFTDIRTY"}
        ),
        "device-exclusive-mapped-read-only": Mapping(
            tuple(still_mapped.values()), placed(*holders), flags=PRIVATE - {"WRITE"}
        ),
        "huge-and-mapped-whole-elsewhere": Mapping(
            run(0, range(PAGES_PER_PMD), READ_ONLY),
            placed(replace(owned(9, ()), pmds_elsewhere=1)),
        ),
    }


def _not_present() -> dict[str, Mapping]:
    swapped: tuple[Slot, ...] = (
        *(NonPresent("swap-exclusive", offset=1000 + at) for at in range(5)),
        NonPresent("swap", offset=2000),
        NonPresent("swap", offset=2001, soft_dirty=True),
        NonPresent("swap-exclusive", offset=2002, soft_dirty=True, uffd_wp=True),
        NonPresent("swap", offset=77, uffd_wp=True),
    )
    moving: tuple[Slot, ...] = tuple(
        NonPresent(kind, folio=0, page=at, soft_dirty=bool(at & 1), uffd_wp=bool(at & 2))
        for at, kind in enumerate((*MIGRATIONS, *reversed(MIGRATIONS), *MIGRATIONS, *MIGRATIONS))
    )
    marks: tuple[Slot, ...] = (
        NonPresent("marker-uffd-wp"),
        None,
        NonPresent("marker-poisoned"),
        NonPresent("hwpoison", offset=0x1234),
    )
    anon = placed(replace(owned(4, ()), flags=MIGRATING, extra_refs=1))
    shmem = placed(replace(cached(4, swapbacked=True), flags=MIGRATING), cached(2, swapbacked=True))
    uffd = SHARED | {"UFFD_WP"}
    around = placed(owned(4))
    file_slots = moving + marks + run(1, range(4))
    return {
        "swap": Mapping(swapped, ()),
        **_of_devices(),
        "swap-shared": Mapping(swapped[5:7], ()),
        "swap-between": Mapping(run(0, range(4)) + swapped[3:6] + run(0, range(7, 16)), around),
        "swap-uffd-wp-child-protected": Mapping(
            swapped, (), flags=PRIVATE | {"UFFD_WP"}, child_uffd_wp=True
        ),
        "migration": Mapping(moving, anon),
        "migration-uffd-wp-child-protected": Mapping(
            moving, anon, flags=PRIVATE | {"UFFD_WP"}, child_uffd_wp=True
        ),
        "migration-shared": Mapping(file_slots, shmem, flags=SHARED, anonymous=False),
        "migration-shared-uffd-wp": Mapping(
            file_slots, shmem, flags=uffd, anonymous=False, child_uffd_wp=True
        ),
        "migration-between": Mapping(
            run(0, range(4), READ_ONLY) + moving[4:7] + run(0, range(7, 16), READ_ONLY), anon
        ),
        "markers-anon": Mapping(marks + run(0, range(4)), around),
        "markers-anon-child-protected": Mapping(
            marks + run(0, range(4)), around, flags=PRIVATE | {"UFFD_WP"}, child_uffd_wp=True
        ),
    }
