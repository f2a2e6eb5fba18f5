# SPDX-License-Identifier: GPL-2.0-only
"""Which rows of a judgement are timed, and which of them first."""

from judge_world import counted, operation
from ream.experiment import Experiment, named
from ream.judge.urgency import FIRST_LAUNCHES, expected_s, rows_in_time, rows_to_try
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
