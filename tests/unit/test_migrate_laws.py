# SPDX-License-Identifier: GPL-2.0-only
"""The oracle of migration: what holds of every prediction, and that both ways come to the same."""

from collections.abc import Iterable
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from migrate_world import FACTS, PLACE, after, chain, pages, tails
from ream.oracle import pte
from ream.oracle.mapping import PAGE_SHIFT, PAGES_PER_PMD
from ream.oracle.migrate import ANYTHING, After, deferrable
from ream.oracle.migrate_folios import (
    PMD_ORDER,
    PSE,
    REASONS,
    Folio,
    Mapped,
    Migration,
    Mode,
    Unit,
)
from ream.oracle.migrate_images import State, before
from ream.oracle.migrate_mixture import ORDERS, correctness_migrations, mixture, split_migrations
from ream.oracle.migrate_uniform import uniform, uniform_migration

ONE_NODE = replace(PLACE, dst_queue=PLACE.src_queue, dst_nid=0)
CASES = correctness_migrations() | split_migrations()
SEEDS = st.integers(0, 1 << 32)


def same(one: State, other: State) -> bool:
    return (
        np.array_equal(one.src, other.src)
        and np.array_equal(one.dst, other.dst)
        and all(map(np.array_equal, one.entries, other.entries))
        and all(map(np.array_equal, one.pmds, other.pmds))
    )


def differing(one: After, other: After) -> set[str]:
    """What of two answers is not the same."""
    plain = {field.name for field in fields(After)} - {"state", "contents"}
    found = {name for name in plain if getattr(one, name) != getattr(other, name)}
    found |= {"state"} if not same(one.state, other.state) else set()
    return found | ({"contents"} if not np.array_equal(one.contents, other.contents) else set())


def mapped_frames(state: State) -> Iterable[tuple[int, int, int]]:
    """Address space, page of the VMA and PFN of all that is mapped, huge pages page by page."""
    for space, (entries, pmds) in enumerate(zip(state.entries, state.pmds, strict=True)):
        for slot in np.flatnonzero(entries).tolist():
            yield space, slot, pte.X86_64.decode(int(entries[slot]))
        for pmd in np.flatnonzero(pmds).tolist():
            first = pte.X86_64.decode(int(pmds[pmd]) & ~PSE)
            for page in range(PAGES_PER_PMD):
                yield space, pmd * PAGES_PER_PMD + page, first + page


def held(migration: Migration, frames: NDArray[np.int64], pfn: int) -> int:
    """What page's bytes a frame holds."""
    page = pfn - PLACE.src_pfn
    if not 0 <= page < migration.nr_pages:
        page = migration.nr_pages + pfn - PLACE.dst_pfn
    return int(frames[page])


# --- By invariants -----------------------------------------------------------------------


def units_after(migration: Migration, answer: After) -> Iterable[Unit]:
    """Folios as they are afterwards: the pages of those that were split."""
    for unit in migration.units:
        yield from unit.pieces() if unit.first_page in answer.split else (unit,)


def check_laws(migration: Migration, answer: After) -> None:
    """What holds whatever was migrated."""
    was, state = before(migration, FACTS, PLACE), answer.state
    nr = migration.nr_pages
    folios = {unit.first_page: unit.folio for unit in units_after(migration, answer)}
    # No page is lost: every address that was mapped is, and reads what it read.
    reads = {(space, slot): pfn - PLACE.src_pfn for space, slot, pfn in mapped_frames(was)}
    now = {
        (space, slot): held(migration, answer.contents, pfn)
        for space, slot, pfn in mapped_frames(state)
    }
    assert now == reads
    # Sources keep their bytes, and no two targets hold the same.
    assert np.array_equal(answer.contents[:nr], np.arange(nr))
    moved = answer.contents[nr:][answer.contents[nr:] != ANYTHING]
    assert len(set(moved.tolist())) == len(moved)
    # Every folio is moved, freed or left, and the counters say how many pages are.
    counted = answer.events["PGMIGRATE_SUCCESS"]
    assert counted == sum(f.nr_pages for page, f in folios.items() if page not in answer.left)
    assert answer.nr_succeeded == counted
    assert len(set(answer.left)) == len(answer.left)
    assert (answer.ret == 0) == (not answer.left)
    if answer.ret >= 0:
        if answer.left:
            assert answer.ret == len(answer.left) + len(answer.split)
        assert answer.events["PGMIGRATE_FAIL"] == sum(folios[page].nr_pages for page in answer.left)
    check_references(migration, answer, folios)
    # Lists are whole, and hold what they should.
    both = {"src": state.src, "dst": state.dst}
    assert chain({"src": state.src}, PLACE.list, 8) == [("src", page) for page in answer.left]
    queued = chain(both, PLACE.src_queue, 16)
    assert queued == [("src", page + 2) for page in answer.src_queued]
    queued = chain(both, PLACE.dst_queue, 16)
    assert queued == [("dst", page + 2) for page in answer.dst_queued]
    waited = {page for page, folio in folios.items() if folio.fault == "partially-mapped"}
    may_be_queued = waited | set(deferrable(migration).tolist())
    assert set(answer.src_queued) | set(answer.dst_queued) <= may_be_queued
    # Every target is somebody's: the folio's, or given back.
    nr_refused = (answer.ret < 0) + len({*migration.no_large_target} & {*answer.split})
    assert answer.nr_allocated - answer.nr_put - nr_refused == answer.nr_added


def check_references(migration: Migration, answer: After, folios: dict[int, Folio]) -> None:
    """Each entry is a reference and a mapping, and nothing else is but what was there."""
    state = answer.state
    nr_mapped = np.zeros(2 * migration.nr_pages, np.int64)
    nr_entries = np.zeros(2 * migration.nr_pages, np.int64)
    heads = np.zeros(2 * migration.nr_pages, np.int64)
    for page, folio in folios.items():
        for side in (0, migration.nr_pages):
            heads[side + page : side + page + folio.nr_pages] = side + page
    for entries, pmds in zip(state.entries, state.pmds, strict=True):
        for word in (*entries[entries != 0].tolist(), *pmds[pmds != 0].tolist()):
            is_huge = word in pmds
            pfn = pte.X86_64.decode(word & ~PSE if is_huge else word)
            page = pfn - PLACE.src_pfn
            if page >= migration.nr_pages:
                page = migration.nr_pages + pfn - PLACE.dst_pfn
            nr_mapped[page] += not is_huge
            nr_entries[heads[page]] += 1
    octets = np.concatenate((state.src, state.dst))
    assert np.array_equal(pages(octets)["_mapcount"], nr_mapped - 1)
    for page, folio in folios.items():
        is_moved = answer.contents[migration.nr_pages + page] != ANYTHING
        src, dst = page, migration.nr_pages + page
        expected_src = nr_entries[src] + 1 + (folio.fault == "extra-ref")
        if page not in answer.left:
            expected_src = int(migration.reason == "MEMORY_FAILURE")
        assert pages(octets)["_refcount"][src] == expected_src
        assert pages(octets)["_refcount"][dst] == nr_entries[dst] + 1
        assert bool(nr_entries[dst]) == is_moved
        if folio.order:
            # Targets of what should have been split, but was not reached, are small ones.
            for at in (src,) if migration.splits(folio) else (src, dst):
                assert tails(octets)["_large_mapcount"][at + 1] == nr_entries[at] - 1


@pytest.mark.parametrize("name", CASES)
def test_the_laws_hold_at_every_edge(name: str) -> None:
    for batched in (False, True):
        check_laws(CASES[name], after(CASES[name], batched=batched))


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.booleans(), st.booleans(), st.sampled_from([1, 16, 512, 1 << 18]))
def test_the_laws_hold_for_mixtures(
    seed: int, batched: bool, splits: bool, batch_pages: int
) -> None:
    migration = replace(mixture(seed, most_pages=1300, splits=splits), batch_pages=batch_pages)
    check_laws(migration, after(migration, batched=batched))


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_without_anything_in_the_way_all_is_moved_in_every_mode(seed: int) -> None:
    migration = mixture(seed, faults=False, most_pages=600)
    answers = [after(replace(migration, mode=mode)) for mode in ("async", "sync_light", "sync")]
    assert all(not differing(answers[0], answer) for answer in answers)
    assert answers[0].left == ()
    assert answers[0].nr_put == 0


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_where_batches_end_shows_in_nothing_but_flushes_and_order(seed: int) -> None:
    migration = mixture(seed, most_pages=600)
    if migration.no_target:
        return
    one, other = after(migration), after(replace(migration, batch_pages=1 << 20))
    assert set(one.left) == set(other.left)
    assert one.events == other.events
    assert one.ret == other.ret
    assert np.array_equal(one.contents, other.contents)
    assert all(map(np.array_equal, one.state.entries, other.state.entries))


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_batched_kernels_differ_in_queues_alone(seed: int) -> None:
    migration = mixture(seed, most_pages=600)
    one, other = after(migration), after(migration, batched=True)
    assert differing(one, other) <= {"state", "src_queued", "dst_queued"}
    for octets, others in ((one.state.src, other.state.src), (one.state.dst, other.state.dst)):
        rows = set(np.flatnonzero((octets != others).any(axis=1)).tolist())
        heads = deferrable(migration).tolist()
        assert rows <= {head + 1 for head in heads} | {head + 2 for head in heads}


def test_on_one_node_there_is_one_queue() -> None:
    migration = Migration((Folio(2), Folio(3, fault="extra-ref"), Folio(2)))
    answer = after(migration, place=ONE_NODE)
    queue = chain({"src": answer.state.src, "dst": answer.state.dst}, PLACE.src_queue, 16)
    assert queue == [("src", 10), ("dst", 2), ("dst", 18)]


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_a_mixture_depends_on_its_seed_alone(seed: int) -> None:
    assert mixture(seed) == mixture(seed)


def test_mixtures_meet_everything() -> None:
    drawn = [mixture(seed) for seed in range(300)]
    folios = [folio for migration in drawn for folio in migration.folios]
    faults = {(folio.fault or "none").partition(":")[0] for folio in folios}
    assert faults == {*("none", "locked", "extra-ref", "writeback", "no-target", "poison", "freed")}
    assert {folio.order for folio in folios} >= set(ORDERS) - {8}
    assert {folio.mapped for folio in folios} == {"ptes", "pmd", "unmapped"}
    assert {migration.mode for migration in drawn} == {"async", "sync_light", "sync"}
    assert {migration.reason for migration in drawn} == set(REASONS)
    assert {migration.nr_mappings for migration in drawn} == {1, 2}
    assert any(migration.nr_pages > 1024 for migration in drawn)


# --- Against itself ----------------------------------------------------------------------

UNIFORM: list[tuple[int, Mapped]] = [*((order, "ptes") for order in ORDERS), (PMD_ORDER, "pmd")]


@pytest.mark.parametrize(("order", "mapped"), UNIFORM)
@pytest.mark.parametrize("nr_mappings", [1, 2])
@pytest.mark.parametrize("shuffled_seed", [None, 5])
def test_what_is_timed_is_predicted_alike_folio_by_folio(
    order: int, mapped: Mapped, nr_mappings: int, shuffled_seed: int | None
) -> None:
    modes: tuple[Mode, ...] = ("async", "sync")
    for mode in modes:
        for batched in (False, True):
            size, batch_pages = 4 << 20, 512 if mode == "sync" else 1 << 18
            was, answer = uniform(
                *(order, size, FACTS, PLACE),
                mapped=mapped,
                nr_mappings=nr_mappings,
                shuffled_seed=shuffled_seed,
                mode=mode,
                batch_pages=batch_pages,
                batched=batched,
            )
            migration = uniform_migration(
                *(order, size),
                mapped=mapped,
                nr_mappings=nr_mappings,
                shuffled_seed=shuffled_seed,
                mode=mode,
                batch_pages=batch_pages,
            )
            assert same(was, before(migration, FACTS, PLACE))
            assert not differing(answer, after(migration, batched=batched))


def test_half_a_folio_cannot_be_timed() -> None:
    with pytest.raises(ValueError, match="not folios of order 4"):
        uniform(4, 24 << PAGE_SHIFT, FACTS, PLACE)
    with pytest.raises(ValueError, match="huge entry"):
        uniform(4, 32 << PAGE_SHIFT, FACTS, PLACE, mapped="pmd")
