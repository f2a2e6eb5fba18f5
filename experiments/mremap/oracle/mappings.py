# SPDX-License-Identifier: GPL-2.0-only
"""Mappings on which moves are judged: those of fork, and edges of its own."""

from experiments.fork.oracle import cases as of_fork
from experiments.fork.oracle.cases import CLEAN, NUMA_HINT, OLD, READ_ONLY, owned, placed, run
from ream.oracle import pte
from ream.oracle.mapping import WRITTEN, Mapping, NonPresent, Present, Slot

NR_SMALL = 72
"""Small folios side by side: eight at a time, then 32 one by one, and again."""


def correctness_mappings() -> dict[str, Mapping]:
    """Mappings by name; the name says what is at the edge."""
    return {**of_fork.correctness_mappings(), **_small(), **_large()}


def _small() -> dict[str, Mapping]:
    """Small folios, whose entries are alike or change after so many."""
    folios = placed(*[owned(0)] * NR_SMALL)

    def entries(*bits: int) -> tuple[Slot, ...]:
        last = len(bits) - 1
        return tuple(Present(at, 0, bits[min(at, last)]) for at in range(NR_SMALL))

    alike = entries(WRITTEN)
    then = {
        "old": OLD,
        "clean": pte.mkclean(WRITTEN),
        "read-only": READ_ONLY,
        "hint": NUMA_HINT,
        "uffd-wp": pte.mkuffd_wp(WRITTEN),
    }
    return {
        "small-alike": Mapping(alike, folios),
        "small-clean": Mapping(entries(CLEAN), folios),
        "small-no-access": Mapping(entries(NUMA_HINT), folios),
        "small-backwards": Mapping(alike[::-1], folios),
        **{
            f"small-{name}-from-{at}": Mapping(entries(*[WRITTEN] * at, bits), folios)
            for name, bits in then.items()
            for at in (1, 7, 8, 13)
        },
        **{
            f"small-hole-at-{at}": Mapping((*alike[:at], None, *alike[at + 1 :]), folios)
            for at in (0, 7, 8, 20)
        },
        "small-swap-at-9": Mapping((*alike[:9], NonPresent("swap", 77), *alike[10:]), folios),
    }


def _large() -> dict[str, Mapping]:
    """A folio of which some pages may be written to, and some not any more."""
    folio = placed(owned(4))
    pages = range(16)
    return {
        "read-only-first": Mapping(run(0, pages, READ_ONLY, WRITTEN), folio),
        "writable-until-5": Mapping(run(0, pages, *[WRITTEN] * 5, READ_ONLY), folio),
        "clean-first": Mapping(run(0, pages, pte.mkclean(WRITTEN), WRITTEN), folio),
    }
