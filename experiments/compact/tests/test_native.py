# SPDX-License-Identifier: GPL-2.0-only
"""Native rows of compact: calls of migrate_pages() one after the other, and the oracle of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.compact import hosted as compact
from experiments.compact.rows import CompactRow
from experiments.migrate import plan as migrate
from experiments.migrate.oracle.folios import PMD_ORDER, BatchLimit, Folio, Mapped, Migration
from experiments.migrate.oracle.images import LIST_BYTES, before
from experiments.migrate.oracle.migrate import ANYTHING
from experiments.migrate.oracle.mixture import mixture
from experiments.migrate.oracle.uniform import Kind, uniform, uniform_migration
from experiments.migrate.plan import memory_of
from experiments.migrate.rows import MigrateRow
from experiments.migrate.tests.laws import check_laws, differing, mapped_frames, same
from experiments.migrate.tests.world import FACTS, PLACE, after, chain
from ream.oracle.mapping import PAGE_SHIFT

ONE_NODE = replace(PLACE, dst_queue=PLACE.src_queue, dst_nid=0)
SEEDS = st.integers(0, 1 << 32)
KINDS: list[tuple[int, Mapped]] = [(0, "ptes"), (3, "ptes"), (PMD_ORDER, "ptes"), (9, "pmd")]
BLOCK_BYTES = 2 << 20


def row(**given) -> CompactRow:
    named = {"name": "row", "stage": "native", "buffer_bytes": BLOCK_BYTES, "batch_pages": 32}
    return CompactRow(**{**named, **given})


# --- What a row asks for -------------------------------------------------------------------


def test_a_row_moves_every_second_page_as_compaction_asks() -> None:
    asked = compact.timed(row(batch_pages=64)).kind
    move = uniform_migration(asked)
    assert (move.mode, move.reason) == ("async", "COMPACTION")
    assert [len(call) for call in move.calls] == [64] * 8
    slots = {slot for _, slot, _ in mapped_frames(before(move, FACTS, PLACE))}
    assert slots == set(range(0, 1024, 2))
    assert {unit.first_page for unit in move.units} == slots


def test_only_channels_make_a_row_copy_by_dma() -> None:
    assert compact.timed(row()).engine == "serial"
    timed = compact.timed(row(mode="dma", channels=2))
    assert (timed.engine, timed.channels) == ("dma", 2)


def test_metadata_are_not_copied_and_flushes_wait_only_where_asked() -> None:
    assert compact.timed(row()).copies
    assert not compact.timed(row()).flush
    assert not compact.timed(row(measure="metadata")).copies
    assert compact.timed(row(tlb_flush="measured")).flush


def test_holes_take_memory_too() -> None:
    small, large = ([compact.timed(row(buffer_bytes=nr * BLOCK_BYTES))] for nr in (1, 2))
    assert memory_of(small) > 4 * BLOCK_BYTES
    assert memory_of(large) == 2 * memory_of(small)


def test_batches_of_several_sizes_share_nothing_but_the_buffer() -> None:
    rows = [compact.timed(row(name=f"row-{nr}", batch_pages=nr)) for nr in (32, 512)]
    alone = memory_of(rows[:1])
    assert alone < memory_of(rows) < 2 * alone


def test_a_row_is_halved_until_it_is_a_block() -> None:
    half = compact.halved(row(buffer_bytes=3 * BLOCK_BYTES))
    assert half is not None
    assert half.buffer_bytes == BLOCK_BYTES
    assert compact.halved(half) is None


def test_rows_of_migrate_are_one_call_as_ever() -> None:
    one = MigrateRow(name="row", folio_bytes=4096, buffer_bytes=BLOCK_BYTES, rounds=1)
    asked = migrate._timed(one).kind
    move = uniform_migration(asked)
    assert (len(move.calls), move.spread, asked.one_node) == (1, 1, False)
    assert (move.mode, move.reason) == ("sync", "SYSCALL")


# --- The oracle ------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "mapped"), KINDS)
@pytest.mark.parametrize("spread", [1, 2, 3])
@pytest.mark.parametrize("folios_per_call", [None, 1, 3, 1 << 20])
@pytest.mark.parametrize("shuffled_seed", [None, 5])
def test_what_is_spread_and_dealt_out_is_predicted_alike_folio_by_folio(
    order: int, mapped: Mapped, spread: int, folios_per_call: int | None, shuffled_seed: int | None
) -> None:
    size = (7 << order) << PAGE_SHIFT
    given = {
        "mapped": mapped,
        "spread": spread,
        "folios_per_call": folios_per_call,
        "shuffled_seed": shuffled_seed,
        "reason": "COMPACTION",
    }
    kind = Kind(order, size, **given)
    migration = uniform_migration(kind)
    for batched in (False, True):
        was, answer = uniform(kind, FACTS, PLACE, batched=batched)
        assert same(was, before(migration, FACTS, PLACE))
        assert not differing(answer, after(migration, batched=batched))


def test_on_one_node_nothing_is_counted_but_what_is_no_longer_isolated() -> None:
    for one in (
        uniform(Kind(0, 8 << PAGE_SHIFT), FACTS, ONE_NODE)[1],
        after(uniform_migration(Kind(0, 8 << PAGE_SHIFT)), place=ONE_NODE),
    ):
        assert one.node_stats["NR_ISOLATED_ANON"] == (-8, 0)
        assert one.node_stats["NR_ANON_MAPPED"] == (0, 0)


def test_each_call_has_a_list_and_a_flush_of_its_own() -> None:
    move = uniform_migration(Kind(0, 10 << PAGE_SHIFT, spread=2, folios_per_call=4))
    octets = {"src": before(move, FACTS, PLACE).src}
    found = [chain(octets, PLACE.list + call * LIST_BYTES, 8) for call in range(3)]
    pages = [[page for _, page in one] for one in found]
    assert pages == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]
    assert after(move).batch_flushes == (3, 3)
    assert after(replace(move, limit=BatchLimit(1))).batch_flushes == (3, 10)
    assert after(replace(move, folios_per_call=None)).batch_flushes == (1, 1)


def test_holes_stay_nobodys() -> None:
    move = uniform_migration(Kind(0, 4 << PAGE_SHIFT, spread=2))
    was, answer = before(move, FACTS, PLACE), after(move)
    assert move.nr_pages == 8
    for side in ("src", "dst"):
        assert np.array_equal(getattr(was, side)[1::2], getattr(answer.state, side)[1::2])
    assert answer.contents[8:].tolist() == [0, ANYTHING, 2, ANYTHING, 4, ANYTHING, 6, ANYTHING]
    assert answer.rss == (4,)


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(1, 3), st.integers(1, 40))
def test_the_laws_hold_for_what_is_spread_and_dealt_out(
    seed: int, spread: int, folios_per_call: int
) -> None:
    plain = mixture(seed, faults=False, most_pages=600)
    move = replace(plain, spread=spread, folios_per_call=folios_per_call)
    answer = after(move)
    # The laws walk one list, which none of several calls leaves anything on.
    check_laws(move, answer)
    together = after(replace(move, folios_per_call=None))
    assert differing(answer, together) <= {"batch_flushes", "state"}
    assert same(answer.state, together.state)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"spread": 0}, "spread 0 is below 1"),
        ({"folios_per_call": 0}, "folios_per_call 0 is below 1"),
        ({"limit": BatchLimit(0)}, "limit 0 is below 1"),
    ],
)
def test_what_no_kernel_could_be_asked_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Migration((Folio(),), **given)


def test_calls_with_something_in_their_way_are_not_modelled() -> None:
    Migration((Folio(), Folio(fault="locked")))
    with pytest.raises(ValueError, match="locked in one of several calls"):
        Migration((Folio(), Folio(fault="locked")), folios_per_call=1)
