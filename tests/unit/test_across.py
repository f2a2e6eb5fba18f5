# SPDX-License-Identifier: GPL-2.0-only
"""Ratios of several runs and machines, against known answers."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ream.measure.across import chance_of_alike, change, over_machines, pooled
from ream.measure.statistics import Estimate, over_launches

RATIOS = st.lists(st.floats(0.2, 5), min_size=2, max_size=12)


def estimate(logs: list[float]) -> Estimate:
    found = over_launches(logs)
    assert found is not None
    return found


def drawn(draw: random.Random, launches: int, *, ratio: float = 1.0, sd: float = 0.02) -> Estimate:
    return estimate([draw.gauss(math.log(ratio), sd) for _ in range(launches)])


def counts(ratio: float, low: float, high: float) -> Estimate:
    """Exact estimate of counts that repeat."""
    return Estimate(ratio, low, high, (ratio,), exact=True)


@given(RATIOS, RATIOS)
def test_pooling_is_one_estimate_from_all_launches(a: list[float], b: list[float]) -> None:
    together = estimate([math.log(one) for one in a + b])
    found = pooled([estimate([math.log(one) for one in part]) for part in (a, b)])
    assert found.ratio == pytest.approx(together.ratio)
    assert (found.low, found.high) == pytest.approx((together.low, together.high))
    assert len(found.per_launch) == len(a) + len(b)


def test_counts_are_pooled_from_the_least_to_the_greatest() -> None:
    runs = [counts(0.5, 0.4, 0.6), counts(0.7, 0.65, 0.9)]
    found = pooled(runs)
    assert (found.low, found.high) == (0.4, 0.9)
    assert found.ratio == pytest.approx(math.sqrt(0.35))


def test_of_nothing_there_is_no_estimate() -> None:
    with pytest.raises(ValueError, match="no estimate"):
        pooled([])
    with pytest.raises(ValueError, match="no machine"):
        over_machines({})


def test_one_machine_speaks_for_itself() -> None:
    own = estimate([0.1, 0.2, 0.3])
    assert over_machines({"a": own}) is own


def test_machines_are_the_replicates_however_many_launches_each_has() -> None:
    draw = random.Random(1)
    machines = {"a": drawn(draw, 100, ratio=0.5), "b": drawn(draw, 2, ratio=0.8)}
    found = over_machines(machines)
    assert len(found.per_launch) == 2
    assert found.ratio == pytest.approx(
        math.sqrt(machines["a"].ratio * machines["b"].ratio), rel=1e-9
    )
    assert found.low is not None
    assert found.low < 0.5


@given(RATIOS, RATIOS)
def test_a_change_has_the_interval_that_scipy_gives_welch(a: list[float], b: list[float]) -> None:
    now, base = ([math.log(one) for one in part] for part in (a, b))
    found = change(estimate(now), estimate(base))
    assert found.ratio == pytest.approx(estimate(now).ratio / estimate(base).ratio)
    if max(now) - min(now) < 1e-3 or max(base) - min(base) < 1e-3:
        return  # scipy warns of what is nearly constant
    known = stats.ttest_ind(now, base, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((math.exp(known.low), math.exp(known.high)))


def test_a_change_without_spread_is_exact_and_of_one_launch_has_no_interval() -> None:
    same = estimate([math.log(0.5)] * 3)
    found = change(same, estimate([0.0] * 3))
    assert (found.ratio, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    assert change(estimate([0.1]), same).low is None


def test_a_change_of_counts_is_exact() -> None:
    now, base = counts(0.6, 0.59, 0.61), counts(0.5, 0.5, 0.5)
    found = change(now, base)
    assert (found.ratio, found.low, found.high) == pytest.approx((1.2, 1.18, 1.22))


def test_counts_of_which_one_does_not_repeat_are_pooled_and_compared_as_times_are() -> None:
    exact, varies = counts(0.5, 0.5, 0.5), estimate([math.log(0.6), math.log(0.7)])
    assert not pooled([exact, varies]).exact
    assert change(varies, exact).low is None  # that one has a single launch
    assert chance_of_alike([exact, varies]) is None


def test_the_interval_of_a_change_covers_the_truth_19_times_in_20() -> None:
    draw = random.Random(3)
    nr_runs = 2000
    covered = 0
    for _ in range(nr_runs):
        now = drawn(draw, 5, ratio=0.9, sd=0.05)
        found = change(now, drawn(draw, 8, ratio=0.6, sd=0.01))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1.5 <= found.high
    assert 0.93 <= covered / nr_runs <= 0.97


def test_runs_that_are_alike_are_said_to_differ_one_time_in_twenty() -> None:
    draw = random.Random(4)
    nr_times = 600
    rejected = 0
    for _ in range(nr_times):
        chance = chance_of_alike([drawn(draw, n, sd=0.03) for n in (6, 8, 10)])
        assert chance is not None
        rejected += chance < 0.05
    assert 0.025 <= rejected / nr_times <= 0.08


def test_a_run_with_a_life_of_its_own_is_found() -> None:
    draw = random.Random(5)
    chance = chance_of_alike([drawn(draw, 8), drawn(draw, 8), drawn(draw, 8, ratio=1.1)])
    assert chance is not None
    assert chance < 1e-4


def test_two_runs_differ_as_welch_says() -> None:
    draw = random.Random(6)
    runs = [drawn(draw, 7, sd=0.02), drawn(draw, 9, ratio=1.01, sd=0.05)]
    logs = [[math.log(one) for one in run.per_launch] for run in runs]
    known = stats.ttest_ind(*logs, equal_var=False).pvalue
    assert chance_of_alike(runs) == pytest.approx(known)


def test_what_cannot_be_said_of_runs_is_not_said() -> None:
    one = estimate([0.1, 0.2])
    assert chance_of_alike([one]) is None
    assert chance_of_alike([one, estimate([0.1])]) is None
    assert chance_of_alike([counts(0.1, 0.1, 0.1), counts(0.1, 0.1, 0.1)]) == 1
    assert chance_of_alike([counts(0.1, 0.1, 0.1), counts(0.2, 0.2, 0.2)]) == 0
    assert chance_of_alike([estimate([0.1, 0.1]), estimate([0.2, 0.2])]) == 0
    assert chance_of_alike([estimate([0.1, 0.1]), estimate([0.1, 0.2])]) is not None


def test_the_interval_over_machines_covers_the_truth_and_one_over_launches_would_not() -> None:
    draw = random.Random(7)
    nr_times, covered = 1000, [0, 0]
    for _ in range(nr_times):
        own = [math.exp(draw.gauss(0, 0.1)) for _ in range(5)]
        machines = {str(n): drawn(draw, 8, ratio=ratio, sd=0.03) for n, ratio in enumerate(own)}
        for n, one in enumerate((over_machines(machines), pooled(machines.values()))):
            assert one.low is not None
            assert one.high is not None
            covered[n] += one.low <= 1 <= one.high
    assert 0.93 <= covered[0] / nr_times <= 0.97
    assert covered[1] / nr_times < 0.70
