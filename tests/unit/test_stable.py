# SPDX-License-Identifier: GPL-2.0-only
"""When a run is stable, and what looking costs: docs/bias.md quotes the coverage found here."""

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ream.cli.continued import stable_of, with_defaults
from ream.errors import BadUsage
from ream.measure.stable import STEP, Stable, half_width_pct, too_wide
from ream.measure.statistics import Estimate, paired
from ream.progress import Reporter
from ream.record.machine import Conditions
from ream.session.until import NONE, how_it_ends, until_stable, worst

NR_RUNS = 2000


@dataclass(frozen=True)
class Result:
    ratio: float | None
    low: float | None
    high: float | None
    p_value: float | None = None


def estimate_of(logs: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Estimate:
    """The estimator that runs use, of launches with one round each."""
    values = {(launch, 0): math.exp(log) for launch, log in enumerate(logs)}
    found = paired(values, dict.fromkeys(values, 1.0))
    assert found is not None
    return found


def run_until_stable(
    draw: "np.random.Generator", planned: int, spread: float, within_pct: float
) -> tuple[Estimate, int]:
    """One run of a variant whose true ratio is 1."""
    most = Stable(within_pct).most_launches(planned)
    logs = draw.normal(0.0, spread, most)
    launches = planned
    while True:
        estimate = estimate_of(logs[:launches])
        if launches >= most or not [*too_wide([("row", "ream", estimate)], within_pct)]:
            return estimate, launches
        launches = min(launches + STEP, most)


# docs/bias.md promises these. The spreads between launches are those where looking costs most:
# with smaller ones the planned launches are enough, with greater ones the most are made anyway.
@pytest.mark.parametrize(
    ("planned", "spread", "stated_pct"),
    [
        pytest.param(16, 0.14, 93.5, marks=pytest.mark.vm),
        pytest.param(8, 0.06, 92.0, marks=pytest.mark.vm),
        pytest.param(8, 0.1, 92.0, marks=pytest.mark.vm),
        pytest.param(3, 0.08, 90.0, marks=pytest.mark.vm),
        (2, 0.06, 89.0),
    ],
)
def test_stopping_at_a_narrow_interval_costs_no_more_coverage_than_is_stated(
    planned: int, spread: float, stated_pct: float
) -> None:
    draw = np.random.default_rng(20261121)
    found = [run_until_stable(draw, planned, spread, 5.0)[0] for _ in range(NR_RUNS)]
    covered = [one.low <= 1 <= one.high for one in found if one.low and one.high]
    assert 100 * sum(covered) / NR_RUNS >= stated_pct


@given(st.floats(0.01, 100), st.floats(1, 3), st.floats(1, 3))
def test_the_width_is_that_of_the_wider_side(ratio: float, down: float, up: float) -> None:
    width = half_width_pct(Result(ratio, ratio / down, ratio * up))
    assert width is not None
    assert width == pytest.approx(100 * max(up - 1, 1 - 1 / down), abs=1e-6)


def test_the_widest_variant_of_each_row_is_named() -> None:
    wide = [
        *too_wide(
            [
                ("a", "published", Result(1.0, 0.9, 1.1)),
                ("a", "ream", Result(0.5, 0.4, 0.6)),
                ("b", "ream", Result(0.5, 0.49, 0.51)),
                ("c", "ream", Result(0.5, None, None)),
                ("c", "published", Result(0.5, 0.1, 0.9)),
            ],
            5.0,
        )
    ]
    assert [str(one) for one in wide] == ["a (ream: 20.0 %)", "c (ream: no interval)"]


def test_a_run_says_how_it_ended() -> None:
    (wide,) = too_wide([("a", "ream", Result(0.5, 0.4, 0.6))], 5.0)
    stable = Stable(5.0, None, 30.0)
    assert how_it_ends([wide], stable, 8, most=32, minutes=29) is None
    said = how_it_ends([], stable, 10, most=32, minutes=60)
    assert said == "stable: every interval is within 5 % after 10 launches"
    said = how_it_ends([wide], stable, 32, most=32, minutes=1)
    assert said is not None
    assert said.startswith("not stable: 32 launches are the most; wider than 5 %")
    said = how_it_ends([wide] * 9, stable, 8, most=32, minutes=30)
    assert said is not None
    assert "30 minutes are over, after 8 launches" in said
    assert said.endswith(", 3 more")


def test_the_conditions_of_several_passes_are_the_worst() -> None:
    def of(load: float, pct: float | None) -> Conditions:
        return Conditions(
            load_before=load, load_after=load, steal_pct=pct, idle_pct=pct, others_pct=pct
        )

    found = worst([of(1, 5.0), of(2, None), of(3, 1.0)])
    assert (found.load_before, found.load_after) == (1, 3)
    assert (found.steal_pct, found.others_pct, found.idle_pct) == (5.0, 5.0, 1.0)
    assert worst([of(1, None)]).steal_pct is None


def test_the_option_may_stand_alone() -> None:
    assert with_defaults(["run", "--until-stable", "fork"]) == ["run", "--until-stable=5", "fork"]
    for words in (["run", "--until-stable=3"], ["guest", "--", "--until-stable"]):
        assert with_defaults(words) == words
    assert stable_of("3", planned=8, max_launches=9, max_minutes=None) == Stable(3.0, 9, None)
    assert stable_of(None, planned=8, max_launches=None, max_minutes=None) is None


@pytest.mark.parametrize("said", ["0", "-1", "100", "nan", "five", ""])
def test_a_width_that_cannot_be_meant_is_refused(said: str) -> None:
    with pytest.raises(BadUsage, match="a number of per cent"):
        stable_of(said, planned=8, max_launches=None, max_minutes=None)


@pytest.mark.parametrize("minutes", [math.inf, math.nan])
def test_minutes_without_an_end_are_refused(minutes: float) -> None:
    with pytest.raises(BadUsage, match="--max-minutes .*: a number of minutes"):
        stable_of("5", planned=8, max_launches=None, max_minutes=minutes)


def test_fewer_launches_at_most_than_are_planned_are_refused_with_the_way_out() -> None:
    with pytest.raises(BadUsage, match="--max-launches 7: 8 are planned already; --launches 7 "):
        stable_of("5", planned=8, max_launches=7, max_minutes=None)
    assert stable_of("5", planned=8, max_launches=8, max_minutes=None) == Stable(5.0, 8, None)


def test_bounds_without_a_goal_are_refused() -> None:
    with pytest.raises(BadUsage, match="they bound --until-stable"):
        stable_of(None, planned=8, max_launches=3, max_minutes=None)


class FakeRun:
    """A run whose only ratio gets narrower with each launch."""

    def __init__(self, stable: Stable | None, *, unit: str = "ns", skipped: str | None = None):
        experiment = SimpleNamespace(launches=4)
        self.request: Any = SimpleNamespace(experiment=experiment, stable=stable)
        self.reporter = Reporter(quiet=True)
        self.asked: list[int] = []
        self._unit, self._skipped = unit, skipped

    def measure(self, launches: int, work: Path) -> Any:
        assert work.is_dir()
        self.asked.append(launches)
        return SimpleNamespace(launches=launches, unit_of=lambda _: self._unit)

    def so_far(self, measured: Any) -> Any:
        half = 0.39 / measured.launches
        variants = {"before": Result(1.0, 0.0, 9.0), "ream": Result(1.0, 1 - half, 1 + half)}
        row = SimpleNamespace(row="a", skipped=self._skipped, variants=variants)
        return SimpleNamespace(rows=[row])


@pytest.mark.parametrize(
    ("stable", "asked", "said"),
    [
        (None, [4], None),
        (Stable(5.0), [4, 6, 8], "stable: every interval is within 5 % after 8 launches"),
        (Stable(20.0), [4], "stable: every interval is within 20 % after 4 launches"),
        (Stable(0.1), [4, 6, 8, 10, 12, 14, 16], "not stable: 16 launches are the most"),
        (Stable(0.1, 7), [4, 6, 7], "not stable: 7 launches are the most"),
        (Stable(0.1, 2), [4], "not stable: 4 launches are the most"),
        (Stable(0.1, None, 0.0), [4], "not stable: 0 minutes are over"),
    ],
)
def test_launches_are_added_until_it_ends(
    tmp_path: Path, stable: Stable | None, asked: list[int], said: str | None
) -> None:
    run = FakeRun(stable)
    measured, ended = until_stable(run, tmp_path)
    assert (run.asked, measured.launches) == (asked, asked[-1])
    assert (ended or "").startswith(said or "")
    assert (ended is None) == (said is None)


@pytest.mark.parametrize(("unit", "skipped"), [("instructions", None), ("ns", "not here")])
def test_without_a_ratio_of_what_varies_nothing_is_added(
    tmp_path: Path, unit: str, skipped: str | None
) -> None:
    run = FakeRun(Stable(0.1), unit=unit, skipped=skipped)
    assert until_stable(run, tmp_path)[1] == NONE
    assert run.asked == [4]


def test_counts_that_do_not_repeat_are_narrowed_as_times_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = FakeRun(Stable(5), unit="instructions")
    summary = run.so_far

    def tested(measured: Any) -> Any:
        found = summary(measured)
        ream = found.rows[0].variants["ream"]
        found.rows[0].variants["ream"] = dataclasses.replace(ream, p_value=0.01)
        return found

    monkeypatch.setattr(run, "so_far", tested)
    assert (until_stable(run, tmp_path)[1] or "").startswith("stable: every interval")
    assert len(run.asked) > 1
