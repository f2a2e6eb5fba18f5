# SPDX-License-Identifier: GPL-2.0-only
"""Which rows of a judgement are timed, and which of them first."""

from collections.abc import Mapping

from judge_world import counted, operation
from ream.experiment import Experiment, named
from ream.judge.judgement import Operation
from ream.judge.urgency import (
    FIRST_LAUNCHES,
    by_urgency,
    expected_s,
    operation_of,
    rows_in_time,
    rows_to_try,
)
from ream.measure.statistics import LEAST_LAUNCHES


def test_rows_that_count_more_are_timed_first() -> None:
    experiment = named("fork").at("native").only(["fork-4k", "fork-64k", "fork-2m"])
    known = {
        "fork-4k": operation("fork-4k", counted=counted(instructions=-0.9)),
        "fork-64k": operation("fork-64k", counted=counted(instructions=0.01)),
        "fork-2m": operation("fork-2m", counted=counted()),
    }
    assert chosen(rows_to_try(experiment, known, 0.0)) == ("fork-64k",)
    assert len(rows_to_try(experiment, known, 60.0).rows) == len(known)
    its = rows_in_time(experiment, known, 1.0, minutes_for(experiment, "fork-64k", "fork-4k"))
    assert chosen(its) == ("fork-64k", "fork-4k")
    assert its.launches == FIRST_LAUNCHES
    assert len(rows_in_time(experiment, known, 1.0, 60.0).rows) == len(known)


def test_another_operation_is_timed_before_another_size_of_the_same_one() -> None:
    """By how much they are affected alone, the first three would all be sizes of one operation."""
    most = ("refork-4k", "refork-4k-cold", "refork-16k", "fork-4k", "munmap-4k", "fork-64k")
    experiment = named("fork").at("native").only(most)
    shares = zip(most, (0.9, 0.8, 0.7, 0.5, 0.05, 0.3), strict=True)
    known = {name: operation(name, counted=counted(instructions=its)) for name, its in shares}
    names = ("refork-4k", "fork-4k", "munmap-4k")
    assert in_order(experiment, known, len(names)) == names
    assert in_order(experiment, known, 5) == (*names, "refork-4k-cold", "fork-64k")


def test_rows_with_equal_counts_come_last_also_of_another_operation() -> None:
    experiment = named("fork").at("native").only(["fork-4k", "fork-64k", "exit-4k"])
    known = {
        "fork-4k": operation("fork-4k", counted=counted(instructions=-0.9)),
        "fork-64k": operation("fork-64k", counted=counted(instructions=-0.8)),
        "exit-4k": operation("exit-4k", counted=counted()),
    }
    assert in_order(experiment, known, 3) == ("fork-4k", "fork-64k", "exit-4k")


def test_the_operation_of_a_row_is_what_stands_before_its_size() -> None:
    its = {"fork-64k-cold": "fork", "rw-to-none-4k-40KiB": "rw-to-none", "64k-dma-1": "dma"}
    its |= {
        "exit": "exit",
        "munmap-free-4k": "munmap-free",
        "4k": "4k",
        "fault-anon-64": "fault-anon",
    }
    assert {row: operation_of(row) for row in its} == its


def in_order(experiment: Experiment, known: Mapping[str, Operation], nr: int) -> tuple[str, ...]:
    """The rows that are timed first, as time suffices for so many."""
    return tuple(row.name for row in by_urgency(experiment, known)[:nr])


def minutes_for(experiment: Experiment, *names: str) -> float:
    """Minutes in which just these rows fit, where each takes what is expected."""
    rows = [row for row in experiment.rows if row.name in names]
    its = sum(expected_s(row) * row.rounds for row in rows)
    return 2 * FIRST_LAUNCHES * its * 1.01 / 60


SMALL_LAST = ("fsdax-100GB", "devdax-100GB", "small-256MB")


def test_of_rows_that_are_affected_alike_the_quick_ones_are_timed_first() -> None:
    experiment = named("zone-device").at("native").only(SMALL_LAST)
    known = {name: operation(name, counted=counted()) for name in SMALL_LAST}
    assert chosen(rows_to_try(experiment, known, 0.0)) == ("small-256MB",)
    its = rows_in_time(experiment, known, 1.0, minutes_for(experiment, "small-256MB"))
    assert chosen(its) == ("small-256MB",)
    nearly = {name: operation(name, counted=counted(instructions=-0.0612)) for name in SMALL_LAST}
    nearly["fsdax-100GB"] = operation("fsdax-100GB", counted=counted(instructions=-0.0634))
    assert chosen(rows_to_try(experiment, nearly, 0.0)) == ("small-256MB",)


def test_a_row_that_does_not_fit_gives_way_to_those_that_are_as_urgent() -> None:
    experiment = named("zone-device").at("native").only(SMALL_LAST)
    known = {name: operation(name, counted=counted(instructions=0.01)) for name in SMALL_LAST}
    known["fsdax-100GB"] = operation("fsdax-100GB", counted=counted(instructions=0.5))
    few = minutes_for(experiment, "small-256MB")
    assert chosen(rows_in_time(experiment, known, 1.0, few)) == ("small-256MB",)
    known["small-256MB"] = operation("small-256MB", counted=counted())
    its = rows_in_time(experiment, known, 1.0, few)
    assert (chosen(its), its.rows[0].rounds) == (("fsdax-100GB",), 1)


def test_a_row_that_takes_long_gets_few_launches() -> None:
    experiment = named("fork").at("native").only(["fork-4k", "fork-64k"])
    slowness = 10.0 / expected_s(experiment.rows[0])
    its = rows_in_time(experiment, {}, slowness, 1.0)
    assert (len(its.rows), its.launches, its.rows[0].rounds) == (1, 3, 1)
    assert rows_in_time(experiment, {}, slowness, 0.0).launches == LEAST_LAUNCHES


def chosen(experiment: Experiment) -> tuple[str, ...]:
    """The names of its rows, sorted."""
    return tuple(sorted((row.name for row in experiment.rows), reverse=True))
