# SPDX-License-Identifier: GPL-2.0-only
"""What is different where a run of the native stage counts instead of timing."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ream.count.counter import LaunchCounter
from ream.count.emulator import CPU, CPUS, build_plugin, emulator_version
from ream.experiment import Experiment
from ream.experiment.shape import RowBase
from ream.progress import Reporter
from ream.record.receipt import CountFacts
from ream.record.record import ANNOTATED, RecordWriter
from ream.session.request import Request
from ream.stage.link import Program
from ream.stage.memory import Sized

R = TypeVar("R", bound=RowBase)

CounterOf = Callable[[Program], LaunchCounter]
"""What makes the counter of a launch from its program."""

SEED = 1
"""Unless another one is given: counts do not depend on chance, and neither does the plan."""

LAUNCHES = 2
"""So that every variant is seen to count the same again, linked elsewhere."""


def once(experiment: Experiment, *, launches: int | None, rounds: int | None) -> Experiment:
    """The experiment with one round of two launches, unless others are asked for.

    A kernel may learn from one round to the next, as an engine's driver does of its speed: then
    rounds differ, and launches do not.
    """
    return experiment.resized(launches=launches or LAUNCHES, rounds=rounds or 1)


def small(rows: Sequence[R], sized: Sized[R]) -> tuple[R, ...]:
    """Each row halved until it is small enough, or cannot be halved any more.

    What is counted for each page of it is that of a larger one, but for what a call costs.
    """
    return tuple(_small(row, sized) for row in rows)


def _small(row: R, sized: Sized[R]) -> R:
    while sized.extent_bytes(row) > sized.counted_bytes and (half := sized.halved(row)) is not None:
        row = half
    return row


def counters(request: Request, record: RecordWriter, reporter: Reporter) -> CounterOf | None:
    """What makes the counter of a launch; None if the run is timed.

    Raises CannotRunHere if the emulator is not installed.
    """
    if request.count is None:
        return None
    emulator_version()
    plugin, annotate = build_plugin(request.cache, reporter.step), request.count.annotate
    return lambda program: LaunchCounter(
        plugin, program, annotate, lambda text: record.write(ANNOTATED, text)
    )


def count_facts(request: Request) -> CountFacts | None:
    """For the receipt; None if the run is timed."""
    if request.count is None:
        return None
    return CountFacts(emulator=emulator_version(), cpu=CPU, cpus=CPUS)
