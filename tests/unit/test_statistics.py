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
    level,
    limit_for,
    limits,
    noise_floor,
    of_limit,
    paired_ratio,
)

T_1_DEGREE = 12.7062  # Student's t, two-sided 95 %, from a printed table
T_2_DEGREES = 4.30265


def sample(
    subject: str,
    launch: int,
    number: int,
    time_ns: int,
    *,
    role: Literal["variant", "limit"] = "variant",
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
