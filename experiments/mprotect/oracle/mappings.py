# SPDX-License-Identifier: GPL-2.0-only
"""Mappings on which changes of protection are judged: those of fork, and edges of its own."""

from dataclasses import replace

from experiments.fork.oracle import cases as of_fork
from experiments.fork.oracle.cases import CLEAN, OLD, READ_ONLY, cached, owned, placed, run
from ream.oracle import pte
from ream.oracle.mapping import PAGES_PER_PMD, SHARED, WRITTEN, Mapping, Present

PAGES_BETWEEN = 7
"""From a page that is not exclusive to the next: sub-batches begin at every place of eight."""


def correctness_mappings() -> dict[str, Mapping]:
    """Mappings by name; the name says what is at the edge."""
    return {**of_fork.correctness_mappings(), **_exclusive_in_part(), **_shared(), **_small()}


def _exclusive_in_part() -> dict[str, Mapping]:
    """Private pages of which some may not be made writable, though the entries are alike."""
    table = tuple(range(PAGES_PER_PMD))
    most = [page for page in table if page % PAGES_BETWEEN]
    last = {
        f"not-exclusive-at-{page}": Mapping(
            run(0, range(16), READ_ONLY),
            placed(owned(4, [one for one in range(16) if one != page])),
        )
        for page in (0, 1, 7, 8, 15)
    }
    return {
        **last,
        "exclusive-but-every-seventh": Mapping(
            run(0, table, READ_ONLY), placed(owned(9, most)), address=of_fork.ADDRESS
        ),
        "shared-with-a-child": Mapping(
            run(0, range(16), READ_ONLY), placed(replace(owned(4, ()), mapped_elsewhere=1))
        ),
    }


def _shared() -> dict[str, Mapping]:
    """Shared memory, whose clean pages a file system may want to know of when they are written."""
    folio, pages = placed(cached(4, swapbacked=True)), range(16)
    clean_or_dirty = tuple(Present(0, page, CLEAN if page % 3 else READ_ONLY) for page in pages)
    return {
        f"shared-{name}": Mapping(slots, folio, flags=SHARED, anonymous=False)
        for name, slots in {
            "dirty": run(0, pages, WRITTEN),
            "read-only-dirty": run(0, pages, READ_ONLY),
            "read-only-clean": run(0, pages, CLEAN),
            "first-clean": run(0, pages, CLEAN, READ_ONLY),
            "first-dirty": run(0, pages, READ_ONLY, CLEAN),
            "clean-and-dirty": clean_or_dirty,
        }.items()
    }


def _small() -> dict[str, Mapping]:
    """Small folios side by side, whose entries are alike or change in one bit after so many."""
    number = 40
    folios = placed(*[owned(0)] * number)
    not_own = placed(*[owned(0, () if at % PAGES_BETWEEN == 0 else None) for at in range(number)])

    def entries(*bits: int) -> tuple[Present, ...]:
        last = len(bits) - 1
        return tuple(Present(at, 0, bits[min(at, last)]) for at in range(number))

    settled_then = {
        "old": pte.mkold(WRITTEN),
        "clean": pte.mkclean(WRITTEN),
        "soft-dirty": WRITTEN | pte.SOFT_DIRTY,
        "uffd-wp": pte.mkuffd_wp(WRITTEN),
    }
    return {
        "small-alike": Mapping(entries(WRITTEN), folios),
        "small-read-only": Mapping(entries(READ_ONLY), folios),
        "small-not-exclusive": Mapping(entries(READ_ONLY), not_own),
        "small-old": Mapping(entries(OLD), folios),
        **{
            f"small-{name}-from-{at}": Mapping(entries(*[WRITTEN] * at, bits), folios)
            for name, bits in settled_then.items()
            for at in (3, 8, 11)
        },
        "small-backwards": Mapping(entries(WRITTEN)[::-1], folios),
    }
