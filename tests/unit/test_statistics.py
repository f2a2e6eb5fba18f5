# SPDX-License-Identifier: GPL-2.0-only
import math
import random
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ream.errors import ReamError
from ream.measure.sample import Sample
from ream.measure.statistics import (
    Estimate,
    counts,
    effects,
    layout,
    level,
    limit_for,
    limits,
    live_ratio,
    matters,
    noise_floor,
    of_limit,
    outstanding,
    over_launches,
    p_value,
    paired_ratio,
    slope,
    slope_ratio,
)

T_1_DEGREE = 12.7062  # Student's t, two-sided 95 %, from a printed table
T_2_DEGREES = 4.30265


def sample(
    subject: str,
    launch: int,
    number: int,
    time_ns: int,
    *,
    role: Literal["variant", "limit", "live"] = "variant",
    threads: int = 1,
    nr_bytes: int = 6400,
) -> Sample:
    return Sample("row", launch, number, role, subject, threads, time_ns, nr_bytes, verified=True)


def pairs(*launches: list[tuple[int, int]]) -> list[Sample]:
    """Each launch a list of rounds, each round the times of `before` and of `mine`."""
    return [
        one
        for launch, rounds in enumerate(launches)
        for number, (before, mine) in enumerate(rounds)
        for one in (
            sample("before", launch, number, before),
            sample("mine", launch, number, mine),
        )
    ]


def ratio_of(samples: list[Sample], subject: str = "mine", *, to: str = "before") -> Estimate:
    estimate = paired_ratio(samples, subject, to=to)
    assert estimate is not None
    return estimate


def test_two_launches_worked_by_hand() -> None:
    # Medians of the paired ratios: 0.5 of (0.4, 0.5, 0.6) and 0.32 of (0.32, 0.32, 1).
    estimate = ratio_of(
        pairs(
            [(1000, 400), (1000, 500), (1000, 600)],
            [(500, 160), (1000, 320), (700, 700)],
        )
    )
    # The mean of the logarithms is that of the geometric mean, sqrt(0.5 * 0.32) = 0.4. Both
    # logs are ln(0.5 / 0.4) = 0.223144 from it; sd = 0.223144 * sqrt(2), standard error 0.223144.
    half = T_1_DEGREE * 0.223144
    assert estimate.ratio == pytest.approx(0.4)
    assert estimate.low == pytest.approx(0.4 * math.exp(-half), rel=1e-4)
    assert estimate.high == pytest.approx(0.4 * math.exp(half), rel=1e-4)
    assert estimate.per_launch == pytest.approx((0.5, 0.32))
    assert estimate.spread == pytest.approx((0.32, 0.5))


def test_three_launches_worked_by_hand() -> None:
    estimate = ratio_of(pairs([(100, 50)], [(100, 100)], [(100, 200)]))
    # Logs -ln 2, 0, ln 2: mean 0, sd ln 2, standard error ln 2 / sqrt(3).
    half = T_2_DEGREES * math.log(2) / math.sqrt(3)
    assert estimate.ratio == pytest.approx(1)
    assert estimate.low == pytest.approx(math.exp(-half), rel=1e-4)
    assert estimate.high == pytest.approx(math.exp(half), rel=1e-4)


def test_an_even_number_of_rounds_takes_the_median_of_logarithms() -> None:
    estimate = ratio_of(pairs([(100, 40), (100, 90)]))
    assert estimate.ratio == pytest.approx(0.6)  # sqrt(0.4 * 0.9), not 0.65


def test_pairing_cancels_weather_that_hits_a_whole_round() -> None:
    estimate = ratio_of(pairs([(100, 50), (1000, 500), (300, 150)], [(700, 350)]))
    assert estimate.ratio == pytest.approx(0.5)
    assert (estimate.low, estimate.high) == pytest.approx((0.5, 0.5))


def test_one_launch_has_a_ratio_but_no_interval() -> None:
    estimate = ratio_of(pairs([(100, 50), (100, 52), (100, 51)]))
    assert estimate.ratio == pytest.approx(0.51)
    assert (estimate.low, estimate.high) == (None, None)


def test_rounds_without_a_partner_are_left_out() -> None:
    samples = [*pairs([(100, 50)]), sample("mine", 0, 1, 10), sample("before", 3, 0, 10)]
    assert ratio_of(samples).per_launch == pytest.approx((0.5,))
    assert paired_ratio(samples, "absent") is None


def test_a_subject_measured_twice_in_a_round_is_an_error() -> None:
    with pytest.raises(ReamError, match="mine was measured twice in round 0 of launch 0"):
        paired_ratio([*pairs([(100, 50)]), sample("mine", 0, 0, 51)], "mine")


times = st.integers(1, 10**12)
rounds = st.lists(st.tuples(times, times), min_size=1, max_size=5)


@given(st.lists(rounds, min_size=1, max_size=6))
def test_swapping_the_two_sides_inverts_the_ratio(launches: list[list[tuple[int, int]]]) -> None:
    samples = pairs(*launches)
    there, back = ratio_of(samples), ratio_of(samples, "before", to="mine")
    assert there.ratio * back.ratio == pytest.approx(1)
    if there.low is not None and back.high is not None:
        assert math.log(there.low) == pytest.approx(-math.log(back.high), abs=1e-6)


@given(st.lists(rounds, min_size=2, max_size=6))
def test_the_ratio_lies_within_its_interval_and_its_spread(
    launches: list[list[tuple[int, int]]],
) -> None:
    estimate = ratio_of(pairs(*launches))
    assert estimate.low is not None
    assert estimate.high is not None
    slack = 1 + 1e-9
    assert estimate.low <= estimate.ratio * slack
    assert estimate.ratio <= estimate.high * slack
    assert estimate.spread[0] <= estimate.ratio * slack
    assert estimate.ratio <= estimate.spread[1] * slack


FLOOR = Estimate(1.0, 0.98, 1.01, (1.0, 1.0))
"""Reaches |log 0.98|, which is more than log 1.01."""


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (Estimate(0.90, 0.88, 0.92, ()), True),
        (Estimate(0.979, 0.975, 0.983, ()), True),  # just outside of the floor
        (Estimate(0.981, 0.975, 0.987, ()), False),  # just within it
        (Estimate(0.90, 0.80, 1.00, ()), False),  # its interval touches 1
        (Estimate(0.90, 0.80, 1.02, ()), False),
        (Estimate(1.10, 1.05, 1.15, ()), True),
        (Estimate(1.015, 1.012, 1.018, ()), False),  # 1 / 0.98 is 1.0204
        (Estimate(1.021, 1.018, 1.024, ()), True),
        (Estimate(0.50, None, None, ()), None),
    ],
)
def test_an_effect_counts_outside_of_1_and_of_the_floor(
    estimate: Estimate, expected: bool | None
) -> None:
    assert counts(estimate, FLOOR) is expected


def test_nothing_counts_without_a_floor() -> None:
    estimate = Estimate(0.5, 0.49, 0.51, ())
    assert counts(estimate, None) is None
    assert counts(estimate, Estimate(1.0, None, None, (1.0,))) is None


def test_the_floor_is_before_against_its_second_copy() -> None:
    samples = [*pairs([(100, 1)], [(200, 1)])]
    samples += [sample("before-again", 0, 0, 110), sample("before-again", 1, 0, 220)]
    floor = noise_floor(samples)
    assert floor is not None
    assert floor.ratio == pytest.approx(1.1)


def fill(how: str, launch: int, number: int, time_ns: int, threads: int = 1) -> Sample:
    return sample(how, launch, number, time_ns, role="limit", threads=threads)


def test_the_limit_is_the_fastest_fill_of_each_number_of_cpus() -> None:
    samples = [
        fill("movnti-8", 0, 0, 100),
        fill("movnti-8", 1, 0, 400),  # geometric mean 200
        fill("vmovntdq-64", 0, 0, 190),
        fill("vmovntdq-64", 1, 0, 190),
        fill("rep-stosq", 0, 0, 120, threads=2),
    ]
    found = limits(samples)
    assert [(one.how, one.level.threads) for one in found] == [
        ("vmovntdq-64", 1),
        ("movnti-8", 1),
        ("rep-stosq", 2),
    ]
    assert found[1].level.time_ns == pytest.approx(200)


def test_a_variant_is_held_against_its_own_number_of_cpus_or_the_next_greater() -> None:
    found = limits([fill("a", 0, 0, 100), fill("b", 0, 0, 50, 4), fill("c", 0, 0, 40, 4)])
    chosen = [limit_for(found, threads) for threads in (1, 2, 4, 5)]
    assert [one.how if one else None for one in chosen] == ["a", "c", "c", None]


def test_the_share_of_the_limit_worked_by_hand() -> None:
    samples = [
        # Launch 0: medians 80 and 100; launch 1: 90 and 200; launch 2 has no fill.
        *(fill("movnti-8", 0, n, t) for n, t in enumerate((80, 79, 300))),
        *(sample("before", 0, n, t) for n, t in enumerate((100, 99, 500))),
        fill("movnti-8", 1, 0, 90),
        sample("before", 1, 0, 200),
        sample("before", 2, 0, 1),
        fill("movnti-8", 0, 0, 40, threads=2),  # another number of CPUs is another limit
    ]
    share = of_limit(samples, "before", limits(samples)[0])
    assert share is not None
    assert share.per_launch == pytest.approx((0.8, 0.45))
    assert share.ratio == pytest.approx(0.6)  # sqrt(0.8 * 0.45)


def test_a_level_is_the_geometric_mean_of_the_launches_medians() -> None:
    samples = [sample("mine", 0, n, t, threads=2) for n, t in enumerate((90, 100, 900))]
    samples += [sample("mine", 1, 0, 400, threads=2)]
    found = level(samples, "mine")
    assert found is not None
    assert found.time_ns == pytest.approx(200)
    assert (found.threads, found.nr_samples, found.nr_launches) == (2, 4, 2)
    assert level(samples, "absent") is None


@pytest.mark.parametrize(
    ("launches", "nr_rounds", "launch_sd", "round_sd"),
    [
        (8, 2, 0.05, 0.02),  # the default run: layout is worth more than the weather
        (8, 2, 0.0, 0.05),  # no layout effect at all
        (8, 12, 0.10, 0.02),  # many rounds do not make up for few launches
        (3, 3, 0.03, 0.03),
        (20, 1, 0.15, 0.01),
    ],
)
def test_the_interval_covers_the_truth_19_times_of_20(
    launches: int, nr_rounds: int, launch_sd: float, round_sd: float
) -> None:
    truth, runs = 0.58, 2500
    draw = random.Random(20261121)
    covered = 0
    for _ in range(runs):
        samples = []
        for launch in range(launches):
            layout = draw.gauss(0, launch_sd)
            for number in range(nr_rounds):
                weather = 1e9 * math.exp(draw.gauss(0, 0.1))  # common to both, so it cancels
                mine = weather * truth * math.exp(layout + draw.gauss(0, round_sd))
                samples.append(sample("before", launch, number, round(weather)))
                samples.append(sample("mine", launch, number, round(mine)))
        estimate = ratio_of(samples)
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= truth <= estimate.high
    assert 0.93 <= covered / runs <= 0.97


def estimated(*logs: float) -> Estimate:
    """Estimate over launches with these log ratios."""
    estimate = over_launches(logs)
    assert estimate is not None
    return estimate


def test_the_p_value_worked_by_hand() -> None:
    # Logs -ln 2, 0, ln 2 and so no effect; then 1, 2, 3: mean 2, sd 1, t = 2 * sqrt(3) = 3.4641.
    # With two degrees p = 1 - t / sqrt(t^2 + 2) = 1 - 3.4641 / sqrt(14) = 0.07418.
    assert p_value(estimated(-math.log(2), 0.0, math.log(2))) == pytest.approx(1)
    assert p_value(estimated(1.0, 2.0, 3.0)) == pytest.approx(0.07418, abs=1e-5)


@given(st.lists(st.floats(-5, 5).filter(lambda x: abs(x) > 1e-6), min_size=2, max_size=20))
def test_the_p_value_is_below_5_per_cent_where_the_interval_excludes_1(logs: list[float]) -> None:
    estimate = estimated(*logs)
    p = p_value(estimate)
    assert p is not None
    assert estimate.low is not None
    assert estimate.high is not None
    excludes = not estimate.low <= 1 <= estimate.high
    assert excludes == (p < 0.05) or p == pytest.approx(0.05)


@pytest.mark.parametrize(("ratio", "expected"), [(1.0, 1.0), (0.9, 0.0)])
def test_launches_that_agree_exactly_leave_no_doubt(ratio: float, expected: float) -> None:
    assert p_value(Estimate(ratio, ratio, ratio, (ratio,) * 4)) == expected
    assert p_value(Estimate(ratio, None, None, (ratio,))) is None


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [
        # Of four: 0.0125, 0.025, 0.0375 and 0.05 are what the ranks allow.
        ((0.01, 0.02, 0.03, 0.9), (True, True, True, False)),
        ((0.9, 0.03, 0.01, 0.02), (False, True, True, True)),
        ((0.03, 0.03, 0.03, 0.03), (True, True, True, True)),  # the fourth carries the first
        ((0.02, 0.9, 0.9, 0.9), (False, False, False, False)),
        ((0.05,), (True,)),
        ((0.051,), (False,)),
        ((), ()),
    ],
)
def test_many_tests_are_decided_together(
    p_values: tuple[float, ...], expected: tuple[bool, ...]
) -> None:
    assert outstanding(p_values) == expected


@given(st.lists(st.floats(0, 1), max_size=30), st.integers(0, 29))
def test_a_test_that_stands_still_stands_when_another_becomes_clearer(
    p_values: list[float], which: int
) -> None:
    clearer = [p / 2 if n == which else p for n, p in enumerate(p_values)]
    for stood, stands in zip(outstanding(p_values), outstanding(clearer), strict=True):
        assert stands or not stood


def test_effects_need_to_stand_and_to_be_larger_than_their_floor() -> None:
    clear = estimated(-0.1, -0.11, -0.09, -0.1)
    assert effects(
        {
            "clear": (clear, FLOOR),
            "doubtful": (estimated(-0.1, -0.5, -0.2, -0.15), FLOOR),  # p = 0.08
            "small": (estimated(-0.01, -0.011, -0.009, -0.01), FLOOR),
            "single": (estimated(-0.1), FLOOR),
            "no floor": (clear, None),
        }
    ) == {"clear": True, "doubtful": False, "small": False, "single": None, "no floor": None}


def test_the_analysis_of_variance_worked_by_hand() -> None:
    e = math.e
    # Log ratios (1, 3) and (5, 7): means 2 and 6, grand mean 4. Between: 2 * (4 + 4) / 1 = 16,
    # within: 4 / 2 = 2, F = 8 with 1 and 2 degrees, so t = sqrt(8) with 2 degrees of freedom:
    # p = 1 - t / sqrt(t^2 + 2) = 1 - sqrt(0.8) = 0.10557. A round is 1 from its launch's middle.
    rounds = [[(10**9, round(10**9 * e**log)) for log in logs] for logs in ((1, 3), (5, 7))]
    found = layout(pairs(*rounds), "mine")
    assert found is not None
    assert found.p_value == pytest.approx(0.10557, abs=1e-5)
    assert found.within == pytest.approx(e)


def test_a_layout_shows_between_launches_only() -> None:
    assert layout(pairs([(100, 50), (100, 60)]), "mine") is None
    assert layout(pairs([(100, 50)], [(100, 60)]), "mine") is None
    alike = layout(pairs([(100, 50), (100, 50)], [(100, 50), (100, 50)]), "mine")
    apart = layout(pairs([(100, 50), (100, 50)], [(100, 60), (100, 60)]), "mine")
    assert alike is not None
    assert apart is not None
    assert (alike.p_value, apart.p_value, apart.within) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("per_launch", "expected"),
    [
        ((0.58, 0.60), False),  # each is 1.7 % off
        ((0.58, 0.71), True),
        ((0.584, 0.611), True),  # 2.3 % off, and the floor reaches 2.02 %
        ((0.5845, 0.608), False),  # 1.99 %
    ],
)
def test_layout_matters_where_one_launch_is_off_by_more_than_the_floor(
    per_launch: tuple[float, ...], expected: bool
) -> None:
    estimate = estimated(*(math.log(one) for one in per_launch))
    assert matters(estimate, FLOOR) is expected
    assert not matters(estimate, None)


def beside(nr_bytes: int, hosted: tuple[int, ...], running: tuple[int, ...]) -> list[Sample]:
    """A row of which each launch has one round: hosted, and on the running kernel."""
    return [
        one
        for launch, (here, there) in enumerate(zip(hosted, running, strict=True))
        for one in (
            sample("before", launch, 0, here, nr_bytes=nr_bytes),
            sample("running", launch, 0, there, role="live", nr_bytes=nr_bytes),
        )
    ]


def test_the_running_kernel_is_compared_with_a_hosted_one_by_rounds_and_by_further_bytes() -> None:
    """A call costs 100 ns here and 1000 there, and 2 or 3 ns a byte."""
    small = beside(100, (300, 300), (1300, 1300))
    large = beside(1100, (2300, 2300), (4300, 4300))
    ratio = live_ratio(large, "before")
    assert ratio is not None
    assert ratio.ratio == pytest.approx(4300 / 2300)
    hosted, live = slope(small, large, "before"), slope(small, large, "running", role="live")
    assert (hosted, live) == ({0: 2.0, 1: 2.0}, {0: 3.0, 1: 3.0})
    found = slope_ratio(live, hosted)
    assert found is not None
    assert (found.ratio, found.low, found.high) == pytest.approx((1.5, 1.5, 1.5))


def test_a_slope_that_noise_turned_round_has_no_ratio() -> None:
    small, large = beside(100, (300, 9000), (1300, 1300)), beside(1100, (2300, 2300), (4300, 4300))
    hosted, live = slope(small, large, "before"), slope(small, large, "running", role="live")
    assert hosted[1] < 0
    assert slope_ratio(live, hosted) is None
