# SPDX-License-Identifier: GPL-2.0-only
"""The oracle of mremap() against cases worked by hand, and against itself."""

from collections.abc import Mapping as Facts
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.fork.oracle.cases import READ_ONLY, owned, placed, run
from experiments.fork.oracle.images import initial
from experiments.fork.oracle.mixture import random_mapping
from experiments.fork.tests.world import FACTS as OF_FORK
from experiments.fork.tests.world import NEWER as NEWER_OF_FORK
from experiments.fork.tests.world import PLACE
from experiments.mremap.oracle.mappings import correctness_mappings
from experiments.mremap.oracle.move import (
    TAKINGS,
    Move,
    Moved,
    Taking,
    extents,
    move_page_tables,
    window,
)
from experiments.mremap.oracle.uniform import uniform_move
from experiments.mremap.plan import kind_of, move_of
from experiments.mremap.rows import MremapRow
from ream.oracle import pte
from ream.oracle.flushes import WORD
from ream.oracle.mapping import SHARED, Mapping, NonPresent, Present
from ream.oracle.meaning import meaning_of

FACTS = {**OF_FORK, "USERFAULTFD": 1}
ARM64 = {**FACTS, "ARM64": 1, "MEM_SOFT_DIRTY": 0, "MAX_DVM_OPS": 512}
NEWER = {**NEWER_OF_FORK, "USERFAULTFD": 1}
CASES = correctness_mappings()
PAGES = range(16)


def facts_for(vma: Mapping) -> Facts[str, int]:
    """Facts of the first kernel that has every kind of entry in the mapping."""
    return next(facts for facts in (FACTS, NEWER) if not vma.missing_facts(facts))


def moved(vma: Mapping, move: Move, *, taking: Taking = "single") -> Moved:
    """What comes of a move of a mapping as it is."""
    facts = facts_for(vma)
    before = window(vma, initial(vma, facts, PLACE).parent, move)
    return move_page_tables(vma, before, move, facts, taking=taking)


def test_an_entry_is_the_same_at_its_new_place_but_soft_dirty() -> None:
    vma = Mapping(run(0, PAGES), placed(owned(4)))
    before = initial(vma, FACTS, PLACE).parent
    result = moved(vma, Move(16, by=20))
    assert not result.entries[:20].any()
    assert np.array_equal(result.entries[20:], before | np.uint64(pte.SOFT_DIRTY))
    assert (result.nr_bytes, result.nr_flushes) == (16 * 4096, 1)
    assert (result.flush_start, result.flush_end) == (vma.address, vma.address + 16 * 4096)


def test_what_is_empty_stays_so_and_is_not_flushed() -> None:
    result = moved(Mapping((None,) * 8, ()), Move(8, by=9))
    assert not result.entries.any()
    assert (result.nr_flushes, result.flush_start, result.flush_end) == (0, WORD, 0)


def test_no_entry_becomes_writable_because_the_first_of_its_batch_is() -> None:
    result = moved(CASES["writable-until-5"], Move(16, by=16), taking="batches")
    assert [bool(word & pte.RW) for word in map(int, result.entries[16:])] == [True] * 5 + [
        False
    ] * 11


def test_a_batch_shares_whether_it_is_dirty() -> None:
    vma = CASES["clean-first"]
    single, batch = moved(vma, Move(16, by=16)), moved(vma, Move(16, by=16), taking="batches")
    assert not pte.dirty(int(single.entries[16]))
    assert pte.dirty(int(batch.entries[16]))


def test_protection_by_a_userfaultfd_ends_where_it_does_not_watch() -> None:
    slots = (Present(0, 0, pte.mkuffd_wp(READ_ONLY)), NonPresent("marker-uffd-wp"), None)
    vma = Mapping(slots, placed(owned(0)), flags=SHARED, anonymous=False)
    kept, lost = (moved(vma, Move(3, by=3, loses_uffd=one)).entries[3:] for one in (False, True))
    assert pte.uffd_wp(int(kept[0]))
    assert kept[1]
    assert not pte.uffd_wp(int(lost[0]))
    assert not lost[1]


def test_a_move_is_cut_where_either_page_table_ends() -> None:
    cuts = extents(0, Move(1024, by=1024 + 256, first=384))
    assert [end - start for start, end in cuts] == [128, 256, 256, 256, 128]


@pytest.mark.parametrize(("nr", "by"), [(8, 7), (8, 512), (600, 1024)])
def test_a_move_that_overlaps_or_moves_whole_tables_is_refused(nr: int, by: int) -> None:
    with pytest.raises(ValueError, match="overlaps, or moves whole page tables"):
        Move(nr, by=by)


def _check_rules(vma: Mapping) -> None:
    """Check what every move preserves: page, history, and which processes may write."""
    facts = facts_for(vma)
    before = [int(word) for word in initial(vma, facts, PLACE).parent]
    move = Move(len(before), by=len(before) + (len(before) % 512 == 0))
    for taking in TAKINGS:
        result = [int(word) for word in moved(vma, move, taking=taking).entries]
        assert not any(result[: move.by])
        for was, entry in zip(before, result[move.by :], strict=True):
            assert bool(was) == bool(entry)
            if pte.present(was):
                assert pte.X86_64.decode(entry) == pte.X86_64.decode(was)
                assert pte.dirty(entry) >= pte.dirty(was)
                assert pte.young(entry) >= pte.young(was)
                assert entry & pte.RW == was & pte.RW


@pytest.mark.parametrize("name", CASES)
def test_no_move_loses_a_page_its_history_or_its_privacy(name: str) -> None:
    _check_rules(CASES[name])


@given(st.integers(0, 1 << 32))
def test_no_move_of_a_mixture_does_either(seed: int) -> None:
    _check_rules(random_mapping(seed))


@pytest.mark.parametrize(
    "fields",
    [
        {"layout": "one-table", "call_bytes": "64KiB", "folio_bytes": "64k"},
        {"layout": "one-table", "call_bytes": "1MiB", "folio_bytes": "4k", "every": 2},
        {"call_bytes": "4MiB", "folio_bytes": "4k", "frames": "scattered"},
        {"call_bytes": "4MiB", "folio_bytes": "64k", "frames": "scattered"},
        {"call_bytes": "1MiB", "folio_bytes": "4k", "clean": True},
    ],
)
@pytest.mark.parametrize("facts", [FACTS, ARM64], ids=["x86_64", "arm64"])
@pytest.mark.parametrize("folded", [False, True])
def test_what_is_timed_is_what_the_rules_say_entry_by_entry(
    fields: dict[str, object], facts: Facts[str, int], folded: bool
) -> None:
    row = MremapRow.model_validate({"name": "one", "rounds": 1, **fields})
    move = move_of(row)
    kind = replace(kind_of(row), folded=folded)
    made = uniform_move(kind, move, facts, PLACE)
    layout = meaning_of(facts).LAYOUT
    slots = []
    for word in map(int, made.entries):
        page = layout.decode(word) - PLACE.first_pfn if word else None
        slots.append(None if page is None else Present(page >> row.order, page % (1 << row.order)))
    nr_folios = len(made.descriptors) >> row.order
    vma = Mapping(tuple(slots), placed(*[owned(row.order)] * nr_folios), made.address)
    for taking in TAKINGS:
        result = move_page_tables(vma, made.entries, move, facts, taking=taking)
        after = made.after[taking]
        assert np.array_equal(result.entries, after.entries)
        assert (result.nr_bytes, result.nr_flushes) == (after.nr_bytes, after.nr_flushes)
        assert (result.flush_start, result.flush_end) == (after.flush_start, after.flush_end)
