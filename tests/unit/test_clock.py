# SPDX-License-Identifier: GPL-2.0-only
"""The clock of a row is chosen by copies of one kernel, and coarse CPU times are not printed."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ream.experiment import Row, named
from ream.measure.clock import LEAST_NS, LEAST_STEPS, by_cpu_time, choose
from ream.measure.sample import Sample
from ream.measure.statistics import paired_ratio
from ream.measure.whole import LeftOut
from ream.published import load_tables
from ream.record.receipt import Receipt
from ream.record.record import Record
from ream.report import explain, letter, table
from ream.report.contract import Summary
from shipped import RECORDS, SHIPPED
from summary_world import summarise

EXPERIMENT = named("zone-device").resized(rounds=2)
FSDAX = next(row for row in EXPERIMENT.rows if row.name == "fsdax-100GB")
FILLS = {("movnti-8", 1): 2.7e7, ("rep-stosq", 1): 6e7}
TIMES = {"before": 6e7, "before-again": 6e7, "published": 3e7, "ream": 1.5e7}

COVERED = (0.925, 0.975)
"""Coverage allowed for 95 % intervals: about four standard errors each way at 1,000 runs."""
LAYOUT_SD = 0.03

Simulated = Callable[..., list[Sample]]

FINE_NS = 300
TICK_NS = 4_000_000
SHARED = 0.4
"""The standard deviation of a logarithm of wall time, on a CPU that others use as well."""


def machine(
    draw: np.random.Generator,
    *,
    effect: float = 1.0,
    wall_sd: float = SHARED,
    cpu_sd: float = 0.01,
    launches: int = 8,
    rounds: int = 5,
) -> list[Sample]:
    """One row of a run whose two clocks have noise of their own, and layouts in common."""
    found = []
    for launch in range(launches):
        for name, truth in (("before", 1.0), ("before-again", 1.0), ("published", effect)):
            layout = draw.normal(0, LAYOUT_SD)
            for number in range(rounds):
                cpu = truth * math.exp(layout + draw.normal(0, cpu_sd))
                wall = cpu * math.exp(abs(draw.normal(0, wall_sd)))
                found.append(
                    Sample(
                        row="row",
                        launch=launch,
                        round=number,
                        role="variant",
                        subject=name,
                        threads=1,
                        time_ns=round(1e8 * wall),
                        cpu_ns=round(1e8 * cpu),
                        nr_bytes=4096,
                        verified=True,
                    )
                )
    return found


@pytest.fixture
def draw() -> np.random.Generator:
    return np.random.default_rng(20261128)


@pytest.mark.parametrize("effect", [0.5, 1.0, 2.0])
def test_a_busy_machine_is_judged_by_cpu_time_whatever_the_effect(
    draw: np.random.Generator, effect: float
) -> None:
    clock = choose(machine(draw, effect=effect), FINE_NS)
    assert clock is not None
    assert (clock.name, clock.cpu_noise < clock.wall_noise) == ("CPU", True)


def test_wall_time_is_kept_where_its_copies_are_nearer(draw: np.random.Generator) -> None:
    clock = choose(machine(draw, wall_sd=0.0, cpu_sd=0.001), FINE_NS)
    assert clock is not None
    assert clock.name == "wall"


def test_neither_variants_nor_later_launches_change_the_choice(draw: np.random.Generator) -> None:
    samples = machine(draw)
    chosen = choose(samples, FINE_NS)
    others = [
        dataclasses.replace(one, time_ns=one.time_ns * 7, cpu_ns=(one.cpu_ns or 0) * 3)
        if one.subject == "published" or one.launch > 1
        else one
        for one in samples
    ]
    assert choose(others, FINE_NS) == chosen
    assert choose([one for one in samples if one.launch < 2], FINE_NS) == chosen


@pytest.mark.parametrize(
    ("change", "step_ns"),
    [
        ({"threads": 2}, FINE_NS),
        ({"cpu_ns": None}, FINE_NS),
        ({"cpu_ns": LEAST_NS - 1}, FINE_NS),
        ({"cpu_ns": LEAST_STEPS * TICK_NS - 1}, TICK_NS),
        ({}, None),
    ],
)
def test_cpu_time_is_no_clock_of_other_samples(
    draw: np.random.Generator, change: dict[str, int | None], step_ns: int | None
) -> None:
    first, *rest = machine(draw)
    assert choose([dataclasses.replace(first, **change), *rest], step_ns) is None


def test_intervals_of_the_chosen_clock_cover_as_any_others(draw: np.random.Generator) -> None:
    """Clocks that are about as good, so that the choice is often another one."""
    nr_runs, covered, chosen = 1000, 0, set()
    for _ in range(nr_runs):
        samples = machine(draw, effect=0.8, wall_sd=0.02, cpu_sd=0.012, rounds=3)
        clock = choose(samples, FINE_NS)
        assert clock is not None
        chosen.add(clock.name)
        its = by_cpu_time(samples) if clock.name == "CPU" else samples
        found = paired_ratio(its, "published")
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.8 <= found.high
    assert chosen == {"wall", "CPU"}
    assert COVERED[0] <= covered / nr_runs <= COVERED[1]


def summary_of(
    samples: list[Sample], receipt: Receipt, *, row: Row = FSDAX, **more: Any
) -> Summary:
    tables = load_tables()
    return summarise(EXPERIMENT, [row], samples, tables, receipt, run="run", stage="native", **more)


def busy(samples: list[Sample], draw: np.random.Generator) -> list[Sample]:
    """The same samples on a CPU that others use: their old time is their CPU time."""
    return [
        dataclasses.replace(
            one,
            cpu_ns=one.time_ns,
            threads=1,
            time_ns=round(one.time_ns * math.exp(abs(draw.normal(0, SHARED)))),
        )
        for one in samples
    ]


def test_the_row_says_which_clock_it_used_and_shows_the_other_beside(
    simulated: Simulated, receipt: Receipt, draw: np.random.Generator
) -> None:
    step = {"cpu_clock_step_ns": FINE_NS}
    quiet = simulated(FSDAX, TIMES, FILLS)
    samples = busy(quiet, draw)
    (found,) = summary_of(samples, receipt.model_copy(update=step)).rows
    (by_wall,) = summary_of(samples, receipt).rows
    (at_rest,) = summary_of(quiet, receipt).rows
    assert by_wall.clock is None
    assert found.clock is not None
    assert found.clock.used == "CPU"
    assert found.variants["published"].ratio == at_rest.variants["published"].ratio
    (beside,) = found.beside
    over = beside.variants["published"].over_before
    assert beside.name == "wall time"
    assert over is not None
    assert over.ratio == by_wall.variants["published"].ratio
    summary = summary_of(samples, receipt.model_copy(update=step))
    for text in (table.render(summary), letter.render(summary)):
        assert "CPU time; in the first launches two copies of before were" in " ".join(text.split())


def test_a_part_of_a_live_call_is_compared_by_wall_time(
    simulated: Simulated, receipt: Receipt, draw: np.random.Generator
) -> None:
    samples = busy(simulated(FSDAX, TIMES, FILLS), draw)
    row = FSDAX.model_copy(update={"part_of": "a call"})
    left = LeftOut(whole_ns=9e7, ns=1e7, low_ns=9e6, high_ns=1.1e7, how="as told")
    more = {"row": row, "left_out": {row.name: left}}
    step = {"cpu_clock_step_ns": FINE_NS}
    (by_cpu,) = summary_of(samples, receipt.model_copy(update=step), **more).rows
    (by_wall,) = summary_of(samples, receipt, **more).rows
    assert (by_cpu.clock is None, by_wall.clock is None) == (False, True)
    assert by_cpu.variants["published"].median < by_wall.variants["published"].median
    assert by_cpu.whole == by_wall.whole
    parts = explain.parts_of(by_cpu)
    assert parts is not None
    assert parts == explain.parts_of(by_wall)


def test_a_row_that_waits_for_a_device_keeps_wall_time(
    simulated: Simulated,
    receipt: Receipt,
    draw: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = busy(simulated(FSDAX, TIMES, FILLS), draw)
    monkeypatch.setattr(type(FSDAX), "waits", True)
    fine = receipt.model_copy(update={"cpu_clock_step_ns": FINE_NS})
    assert summary_of(samples, fine).rows[0].clock is None


@pytest.mark.parametrize(("step_ns", "has_cpu"), [(FINE_NS, True), (TICK_NS, False)])
def test_cpu_time_below_25_steps_of_its_clock_is_not_printed(
    simulated: Simulated, receipt: Receipt, step_ns: int, has_cpu: bool
) -> None:
    samples = [
        dataclasses.replace(one, cpu_ns=TICK_NS * 20) for one in simulated(FSDAX, TIMES, FILLS)
    ]
    one = receipt.model_copy(update={"cpu_clock_step_ns": step_ns})
    its = summary_of(samples, one).rows[0].variants["published"]
    assert (its.cpu_ns is not None, its.cpu_over_before is not None) == (has_cpu, has_cpu)


@pytest.mark.parametrize(
    "run", [one for one in SHIPPED if "-native-" in one.name], ids=lambda one: one.name
)
def test_no_shipped_record_prints_a_cpu_ratio_of_samples_below_100_ms(run: Path) -> None:
    summary = Summary.from_object(Record.load(str(run), RECORDS).run, source=run.name)
    if summary.receipt.cpu_clock_step_ns is not None:
        return
    for one in summary.rows:
        for its in one.variants.values():
            assert its.cpu_ns is None or its.cpu_ns >= LEAST_STEPS * TICK_NS
            to = one.variants.get(its.compared_with or "before")
            assert its.cpu_over_before is None or (to is not None and to.cpu_ns is not None)
