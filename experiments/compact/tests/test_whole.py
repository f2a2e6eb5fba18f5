# SPDX-License-Identifier: GPL-2.0-only
"""Native rows of compact that ask for huge pages: what the runner is told, and which program."""

from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.compact import whole
from experiments.compact.hosted import BATCHES, HOSTED
from experiments.compact.rows import HUGE_BYTES, NODE_STEP, CompactRow
from ream.errors import WrongVariant
from ream.experiment import named
from ream.measure.sample import Sample
from ream.report.counts import counted_of
from ream.report.counts_table import differences
from ream.stage.calls import Calls
from ream.stage.hosted import Hosted, calls_owed, programs_of
from ream.stage.native import Build, Round
from ream.stage.runner_plan import line

SHIPPED = named("compact").at("native")
WHOLE = [row for row in SHIPPED.rows if HOSTED.runs(row)]
BUILD = Build({}, {})


def row(**given) -> CompactRow:
    return CompactRow(**{"name": "row", "stage": "native", "nr_huge": 128, **given})


def words(text: str) -> dict[str, str]:
    return dict(word.split("=") for word in text.split())


def test_every_row_is_one_program_s() -> None:
    assert programs_of(named("compact")) == (HOSTED, BATCHES)
    assert 0 < len(WHOLE) < len(SHIPPED.rows)
    assert all(HOSTED.runs(one) != BATCHES.runs(one) for one in SHIPPED.rows)
    assert HOSTED.label != BATCHES.label


def test_the_runner_is_told_what_the_row_says(tmp_path: Path) -> None:
    one = row(rounds=2, holes="odd", free_every=4, freed="random", node_bytes="512MiB", nr_huge=9)
    with whole.plan_of([one, row()], None, BUILD, tmp_path) as (plan, descriptors):
        first, second = map(words, plan.read_text().splitlines())
    assert not descriptors
    assert first["nr_pages"] == str((512 << 20) // 4096)
    said = ("name", "rounds", "holes", "used_every", "free_every", "freed_order", "nr_huge")
    assert [first[name] for name in said] == ["row", "2", "odd", "2", "4", "random", "9"]
    assert second["holes"] == "scattered"
    # Nobody holds a page that is timed.
    held = ("pinned_every", "mlocked_every", "locked_every")
    assert {told[name] for told in (first, second) for name in held} == {"0"}


@pytest.mark.parametrize("seed", range(50))
def test_a_mixture_can_be_made_and_what_is_drawn_is_its_seed_s(seed: int) -> None:
    one = whole._mixed(seed)
    assert one == whole._mixed(seed)
    assert one != replace(whole._mixed(seed + 1), name=one.name)
    assert 2 in {one.used_every, one.free_every}
    assert one.node_bytes % NODE_STEP == 0
    assert one.node_bytes >= whole.LEAST_BYTES
    assert words(line(whole.FOLDER / "row.def", one.words()))["drawn"] == str(seed)


def heard(its: Hosted[CompactRow]) -> Calls:
    """What a launch says in which a series calls less often than its tree."""
    calls = calls_owed(its, {"mine": "before"})
    stubs = tuple(
        {"name": "__cond_resched", "variant": name, "calls": nr}
        for name, nr in (("before", 9), ("mine", 3))
    )
    deque(calls.counted([Round("case", stubs, 1.0)], ("before", "mine")), maxlen=0)
    return calls


def test_a_compactor_may_do_less_than_its_tree_and_call_less() -> None:
    heard(HOSTED).check()
    with pytest.raises(WrongVariant, match="is called 3 times, by before 9 times"):
        heard(BATCHES).check()


def test_cases_run_twice_so_that_what_comes_of_them_can_repeat() -> None:
    assert len({one.name for one in whole.EDGES}) == len(whole.EDGES)
    assert all(one.rounds > 1 for one in whole.EDGES)


def test_a_row_is_halved_with_what_it_asks_for_until_most_of_it_is_reserved() -> None:
    sizes = []
    one: CompactRow | None = row()
    while one is not None:
        sizes.append((one.node_bytes >> 20, one.nr_huge))
        one = whole.halved(one)
    assert sizes == [(1024, 128), (512, 64), (256, 32), (128, 16), (64, 8)]
    odd = whole.halved(row(node_bytes="132MiB", nr_huge=3))
    assert odd is not None
    assert (odd.node_bytes % NODE_STEP, odd.nr_huge) == (0, 1)


def test_rows_share_the_node() -> None:
    small, large = row(node_bytes="256MiB", nr_huge=8), row()
    assert whole.needed_bytes([small, large], BUILD) == whole.needed_bytes([large], BUILD)
    assert large.node_bytes < whole.needed_bytes([large], BUILD) < 1.1 * large.node_bytes


def test_the_shipped_rows_ask_for_what_the_free_half_can_give() -> None:
    for one in WHOLE:
        free = 1 / one.free_every if one.free_every > 2 else 1 - 1 / one.used_every
        assert one.nr_huge * HUGE_BYTES <= free * one.node_bytes / 2


def test_two_cpus_have_the_pages_loaded_on_any_machine(tmp_path: Path) -> None:
    assert HOSTED.suit([row()], None).cpus == 2
    ((planned, cpus),) = whole.cases(BUILD, tmp_path, [], edges=True)
    with planned as (plan, _):
        assert len(plan.read_text().splitlines()) == len(whole.EDGES)
    assert cpus == 2


def test_what_a_variant_did_is_what_its_counts_are_divided_by() -> None:
    asked = row(holes="even")

    def sample(subject: str, allocated: int, instructions: int) -> Sample:
        return Sample(
            row="row",
            round=0,
            role="variant",
            subject=subject,
            threads=1,
            time_ns=1,
            cpu_ns=1,
            nr_bytes=allocated << 21,
            verified=True,
            launch=0,
            functions={"f": {"instructions": instructions}},
        )

    its = counted_of(
        asked,
        [sample("before", 22, 2200), sample("ream", 128, 6400)],
        ["before", "ream"],
        {},
        [],
        exact=True,
    )
    assert its is not None
    assert (its.number, its.numbers) == (22, {"ream": 128})
    assert differences(its, "before", "ream") == [("f", {"instructions": -50.0})]
