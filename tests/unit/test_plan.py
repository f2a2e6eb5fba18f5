# SPDX-License-Identifier: GPL-2.0-only
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from named_rows import row_of
from ream.measure.plan import estimated_seconds, plan_launches, plan_programs
from ream.measure.sample import Sample
from ream.measure.statistics import paired_ratio
from ream.stage.live import visit_order

VARIANTS = ("before", "before-again", "published", "ream")


@given(st.integers(), st.integers(1, 20))
def test_the_same_seed_plans_the_same_run(seed: int, launches: int) -> None:
    plan = plan_launches(VARIANTS, launches=launches, seed=seed)
    assert plan == plan_launches(VARIANTS, launches=launches, seed=seed)
    assert [launch.number for launch in plan] == list(range(launches))


@given(st.integers(), st.integers(1, 20))
def test_every_launch_is_within_bounds(seed: int, launches: int) -> None:
    for launch in plan_launches(VARIANTS, launches=launches, seed=seed):
        assert 0 < launch.seed < 1 << 64
        assert launch.data_offset in range(0, 4096, 64)
        assert sorted(launch.link_order) == sorted(VARIANTS)


@given(st.integers(), st.integers(1, 10))
def test_more_launches_leave_the_first_ones_as_they_were(seed: int, launches: int) -> None:
    longer = plan_launches(VARIANTS, launches=launches + 5, seed=seed)
    assert longer[:launches] == plan_launches(VARIANTS, launches=launches, seed=seed)


def test_this_seed_plans_this_launch_in_every_version() -> None:
    # A record names its seed; a later ream must be able to repeat its layout.
    first = plan_launches(VARIANTS, launches=1, seed=42)[0]
    assert (first.seed, first.data_offset, first.link_order) == (
        12248342995937638172,
        2304,
        ("ream", "before-again", "published", "before"),
    )


def test_this_seed_plans_these_visits_in_every_version() -> None:
    planned = list(visit_order((4, 16, 64, 2048), rounds=2, launches=2, seed=42))
    orders = ((16, 2048, 64, 4), (64, 2048, 16, 4), (64, 4, 16, 2048), (4, 16, 64, 2048))
    places = ((0, 0), (0, 1), (1, 0), (1, 1))
    assert planned == [
        (*place, kib) for place, order in zip(places, orders, strict=True) for kib in order
    ]


def test_every_offset_and_every_order_has_its_chance() -> None:
    plan = plan_launches(("a", "b", "c"), launches=6000, seed=7)
    offsets = Counter(launch.data_offset for launch in plan)
    orders = Counter(launch.link_order for launch in plan)
    # Expected 93.75 and 1000; seven standard deviations are 68 and 202.
    assert len(offsets) == 64
    assert all(abs(count - 93.75) < 68 for count in offsets.values())
    assert len(orders) == 6
    assert all(abs(count - 1000) < 202 for count in orders.values())
    assert len({launch.seed for launch in plan}) == 6000


def test_the_estimate_grows_with_the_work() -> None:
    row = row_of("zone-device", name="r", device_bytes=1 << 36, order=0, type="FS_DAX", rounds=2)
    once = estimated_seconds([row], nr_variants=4, launches=8)
    assert once > estimated_seconds([row], nr_variants=3, launches=8)
    assert estimated_seconds([row, row], nr_variants=4, launches=16) > 2 * once


MANY = (*VARIANTS, *(f"step-{number}" for number in range(30)))


@given(st.integers(), st.integers(1, 6))
def test_variants_that_fit_one_program_are_launched_as_ever(seed: int, launches: int) -> None:
    ever = plan_launches(VARIANTS, launches=launches, seed=seed)
    assert plan_programs(VARIANTS, launches=launches, seed=seed) == ever
    just = MANY[:32]
    assert plan_programs(just, launches=launches, seed=seed) == plan_launches(
        just, launches=launches, seed=seed
    )


@given(st.integers(), st.integers(1, 6), st.integers(4, 40))
def test_more_variants_are_shared_among_programs_that_all_have_what_is_compared_with(
    seed: int, launches: int, most: int
) -> None:
    planned = plan_programs(MANY, launches=launches, seed=seed, most=most)
    assert [launch.number for launch in planned] == list(range(len(planned)))
    seen = Counter(name for launch in planned for name in launch.link_order)
    for launch in planned:
        assert len(launch.link_order) <= most
        assert {"before", "before-again", "published"} <= set(launch.link_order)
    assert {seen[name] for name in MANY if name not in VARIANTS[:3]} == {launches}
    assert seen["before"] == len(planned)
    longer = plan_programs(MANY, launches=launches + 3, seed=seed, most=most)
    assert longer[: len(planned)] == planned


def test_variants_of_several_programs_are_paired_with_their_own_programs_before() -> None:
    planned = plan_programs(MANY, launches=4, seed=1)
    assert len(planned) == 8
    # A program of odd number is slower by half, whatever it holds.
    samples = [
        Sample(
            row="row",
            launch=launch.number,
            round=0,
            role="variant",
            subject=name,
            threads=1,
            time_ns=(2000 if name.startswith("step") else 1000) * (2 + launch.number % 2),
            nr_bytes=1,
            verified=True,
        )
        for launch in planned
        for name in launch.link_order
    ]
    for name in MANY[1:]:
        estimate = paired_ratio(samples, name)
        assert estimate is not None
        wanted = 2 if name.startswith("step") else 1
        assert (estimate.low, estimate.ratio, estimate.high) == pytest.approx((wanted,) * 3)
        in_all = name in ("before-again", "published")
        assert len(estimate.per_launch) == (8 if in_all else 4)
