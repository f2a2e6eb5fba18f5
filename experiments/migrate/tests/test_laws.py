# SPDX-License-Identifier: GPL-2.0-only
"""The oracle of migration: what holds of every prediction, and that both ways come to the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.migrate.oracle.folios import (
    PMD_ORDER,
    REASONS,
    STOCK_LIMIT,
    BatchLimit,
    Folio,
    Mapped,
    Migration,
    Mode,
)
from experiments.migrate.oracle.images import before
from experiments.migrate.oracle.migrate import deferrable
from experiments.migrate.oracle.mixture import ORDERS, correctness_migrations, mixture
from experiments.migrate.oracle.uniform import Kind, uniform, uniform_migration
from experiments.migrate.tests.laws import check_laws, differing, same
from experiments.migrate.tests.world import FACTS, PLACE, after, chain
from ream.oracle.mapping import PAGE_SHIFT

ONE_NODE = replace(PLACE, dst_queue=PLACE.src_queue, dst_nid=0)
CASES = correctness_migrations()
SEEDS = st.integers(0, 1 << 32)
LIMITS = (BatchLimit(1), BatchLimit(16, 8, 64), STOCK_LIMIT, BatchLimit(1 << 18))


# --- By invariants -----------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_the_laws_hold_at_every_edge(name: str) -> None:
    for batched in (False, True):
        check_laws(CASES[name], after(CASES[name], batched=batched))


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.booleans(), st.booleans(), st.sampled_from(LIMITS))
def test_the_laws_hold_for_mixtures(
    seed: int, batched: bool, splits: bool, limit: BatchLimit
) -> None:
    migration = replace(mixture(seed, most_pages=1300, splits=splits), limit=limit)
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
    one, other = after(migration), after(replace(migration, limit=BatchLimit(1 << 20)))
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
    expected = (
        "none",
        "locked",
        "extra-ref",
        "writeback",
        "no-target",
        "poison",
        "freed",
        "pinned",
    )
    assert faults == {*expected}
    assert any(folio.holes for folio in folios)
    assert any(folio.underused for folio in folios)
    assert {folio.order for folio in folios} >= set(ORDERS) - {8}
    assert {folio.mapped for folio in folios} == {"ptes", "pmd", "both", "unmapped"}
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
            size, limit = 4 << 20, STOCK_LIMIT if mode == "sync" else BatchLimit(64, 8, 256)
            kind = Kind(
                *(order, size),
                mapped=mapped,
                nr_mappings=nr_mappings,
                shuffled_seed=shuffled_seed,
                mode=mode,
                limit=limit,
            )
            was, answer = uniform(kind, FACTS, PLACE, batched=batched)
            migration = uniform_migration(kind)
            assert same(was, before(migration, FACTS, PLACE))
            assert not differing(answer, after(migration, batched=batched))


def test_half_a_folio_cannot_be_timed() -> None:
    with pytest.raises(ValueError, match="not folios of order 4"):
        uniform(Kind(4, 24 << PAGE_SHIFT), FACTS, PLACE)
    with pytest.raises(ValueError, match="huge entry"):
        uniform(Kind(4, 32 << PAGE_SHIFT, mapped="pmd"), FACTS, PLACE)
