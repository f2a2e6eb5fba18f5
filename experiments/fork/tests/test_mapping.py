# SPDX-License-Identifier: GPL-2.0-only
"""Mappings for the oracle of fork: what they refuse to be, what they need, what is drawn."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.fork.oracle.cases import correctness_mappings, owned, placed, run
from experiments.fork.oracle.images import second_pages, uniform_mapping, uniform_second_pages
from experiments.fork.oracle.mixture import random_mapping
from ream.oracle import pte
from ream.oracle.mapping import (
    NEEDED_FACT,
    PRIVATE,
    SHARED,
    Folio,
    Mapping,
    NonPresent,
    Present,
    Special,
)
from ream.oracle.pte import swap_offset, swap_type


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"address": 0x1001}, "address 0x1001 is not page aligned"),
        ({"slots": ()}, "no slots"),
        ({"child_uffd_wp": True}, "child_uffd_wp without the flag UFFD_WP"),
        ({"flags": PRIVATE | {"LOCKED"}}, "flag LOCKED: mlock is not modelled"),
        ({"has_anon_vma": False}, "anonymous folios without an anon_vma"),
        ({"slots": (Present(3, 0),)}, "slot 0: no folio 3"),
        ({"slots": (None, Present(0, 16))}, "slot 1: no page 16 in folio 0"),
        ({"slots": (Special(),)}, "slot 0: a special entry without the flag MIXEDMAP"),
        ({"slots": (Present(0, 0, pte.RW),)}, "slot 0: neither PRESENT nor PROTNONE"),
        ({"slots": (NonPresent("migration-read"),)}, "folio 0 migrates, but is not locked"),
        ({"folios": (Folio(4, 8),)}, "folio 0: page 8 is not aligned to its size"),
        ({"folios": (Folio(4, 0), Folio(0, 15))}, "folio 1: page 15 belongs to the one before"),
        ({"folios": (replace(owned(4), mapped_elsewhere=1),)}, "mapped elsewhere, are exclusive"),
        ({"folios": (Folio(4, 0, swapbacked=False),)}, "folio 0: anonymous but not swapbacked"),
    ],
)
def test_what_no_kernel_could_hold_is_refused(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        replace(Mapping(run(0, range(16)), placed(owned(4))), **changes)


def test_facts_that_a_build_lacks_are_named() -> None:
    cases = correctness_mappings()
    without = dict.fromkeys((name for name in NEEDED_FACT.values() if "MIGRATION" not in name), 0)
    assert cases["migration"].missing_facts(without) == (
        "SWP_MIGRATION_READ",
        "SWP_MIGRATION_READ_EXCLUSIVE",
        "SWP_MIGRATION_WRITE",
    )
    assert cases["swap"].missing_facts(without) == ()


@pytest.mark.parametrize(
    ("flags", "prot"),
    [
        (PRIVATE, pte.PRESENT | pte.USER | pte.ACCESSED | pte.NX),
        (PRIVATE | {"EXEC"}, pte.PRESENT | pte.USER | pte.ACCESSED),
        (SHARED, pte.PRESENT | pte.USER | pte.ACCESSED | pte.NX | pte.RW),
        (SHARED - {"WRITE"}, pte.PRESENT | pte.USER | pte.ACCESSED | pte.NX),
        (PRIVATE - {"READ", "WRITE"}, pte.PROTNONE | pte.ACCESSED),
    ],
)
def test_new_entries_have_the_bits_of_their_vma(flags: frozenset[str], prot: int) -> None:
    assert Mapping((None,), (), flags=flags).page_prot == prot


@pytest.mark.parametrize("offset", [0, 1, 0x12345, (1 << 50) - 1])
@pytest.mark.parametrize("kind", [0, 1, 31])
def test_a_swap_entry_says_what_it_was_made_of(kind: int, offset: int) -> None:
    bits = pte.SWP_EXCLUSIVE | pte.SWP_SOFT_DIRTY | pte.SWP_UFFD_WP
    entry = pte.swap_entry(kind, offset) | bits
    assert (swap_type(entry), swap_offset(entry)) == (kind, offset)


def test_a_batch_reaches_to_the_end_of_its_page_table_at_most() -> None:
    vma = Mapping((None,) * 600, (), address=(1 << 40) + (509 << 12))
    assert [vma.pages_to_pmd_end(at) for at in (0, 2, 3, 514, 515)] == [3, 1, 512, 1, 512]


@pytest.mark.parametrize(("order", "nr_pages"), [(10, 1024), (-1, 8), (4, 8), (0, 0)])
def test_what_is_no_whole_number_of_folios_is_refused(order: int, nr_pages: int) -> None:
    with pytest.raises(ValueError, match="are not folios of order"):
        uniform_mapping(order, nr_pages)


def test_second_pages_are_those_behind_the_heads_of_large_folios() -> None:
    folios = placed(owned(0), owned(2), owned(0), owned(3))
    assert second_pages(Mapping(run(0, [0]), folios)).tolist() == [5, 17]
    assert uniform_second_pages(3, 24).tolist() == [1, 9, 17]
    assert uniform_second_pages(0, 24).tolist() == []


@given(seed=st.integers(0, 1 << 32))
def test_a_mixture_is_its_seed_s(seed: int) -> None:
    assert random_mapping(seed) == random_mapping(seed)


def test_mixtures_hold_everything_at_some_time() -> None:
    drawn = [random_mapping(seed) for seed in range(120)]
    kinds = {slot.kind for vma in drawn for slot in vma.slots if isinstance(slot, NonPresent)}
    assert len(kinds) == 8
    assert any(isinstance(slot, Special) for vma in drawn for slot in vma.slots)
    assert any(None in vma.slots for vma in drawn)
    assert {vma.anonymous for vma in drawn} == {True, False}
    assert any(vma.nr_spares > 1 for vma in drawn)
    assert max(vma.nr_pages for vma in drawn) > 512
