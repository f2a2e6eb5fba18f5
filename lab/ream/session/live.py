# SPDX-License-Identifier: GPL-2.0-only
"""A run of the live stage, which measures this machine's kernel through system calls.

`Live` is what an experiment provides for this stage, in its module `live`.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ream.counted import counted
from ream.errors import CannotRunHere
from ream.experiment import RUNNING, Experiment, Row
from ream.experiment.registry import part
from ream.measure.taken import Taken
from ream.progress import Reporter
from ream.published import Table
from ream.record.journal import Journal
from ream.record.machine import Machine, conditions, take_snapshot
from ream.record.receipt import BuiltKernel
from ream.record.record import RecordWriter
from ream.session.replay import Replayed
from ream.session.request import Measured, Request
from ream.session.vm import by_reason
from ream.stage.live import Visits
from ream.stage.shadowed import shadowed_warnings
from ream.stage.workload import Workload
from ream.values import Scalar

R = TypeVar("R", bound=Row)


def _no_options(_machine: Machine) -> Mapping[str, Scalar]:
    return {}


def _no_remarks(
    _rows: Sequence[R], _taken: Sequence[Taken], _tables: Sequence[Table]
) -> Mapping[str, tuple[str, ...]]:
    return {}


@dataclass(frozen=True)
class Live(Generic[R]):
    """How rows are measured through system calls."""

    why_not: Callable[[R], str | None]
    """Why a row cannot be measured on this machine; None if it can."""
    taken: Callable[[Sequence[R], Visits], Iterator[Taken]]
    """Measures every launch and round of rows; raises CannotRunHere, VerificationFailed."""
    plan_lines: Callable[[Sequence[R]], Iterable[str]]
    """Lines for a dry run: the memory taken, and the settings changed during the run."""
    programs: tuple[Workload, ...]
    """Workloads that the stage runs."""
    remarks: Callable[
        [Sequence[R], Sequence[Taken], Sequence[Table]], Mapping[str, tuple[str, ...]]
    ] = _no_remarks
    """Remarks by row, for all rows, measured or not."""
    options: Callable[[Machine], Mapping[str, Scalar]] = _no_options
    """Options of every operation, for the receipt."""


def live_of(experiment: Experiment) -> Live[Row]:
    """Return the live stage of an experiment; raises CannotRunHere if it has none."""
    found = part(type(experiment), "live", Live)
    if found is None:
        raise CannotRunHere(f"{experiment.name} has no live stage")
    return found


def measure_live(
    request: Request,
    tables: Sequence[Table],
    *,
    machine: Machine,
    work: Path,
    record: RecordWriter,
    reporter: Reporter,
) -> Measured:
    """Measure the rows that this machine can run; report the others with the reason.

    Raises CannotRunHere if it can run none, and what measuring raises.
    """
    experiment = request.experiment
    its = live_of(experiment)
    skipped = rows_left_out(its, experiment.rows, record.journal)
    rows = [row for row in experiment.rows if row.name not in skipped]
    if not rows:
        raise CannotRunHere(next(iter(skipped.values())))
    for reason, names in by_reason(skipped).items():
        reporter.step(f"{counted(len(names), 'row')} not run: {reason}")
    start = take_snapshot()
    taken: list[Taken] = []
    memory = Replayed(record.journal)
    visits = Visits(experiment.launches, request.seed, work, reporter.step, memory.recall)
    with reporter.measuring(float(experiment.launches * sum(it.rounds for it in rows))) as advance:
        for one in its.taken(rows, visits):
            record.append(one.sample, one.extra)
            taken.append(one)
            with reporter.again() if memory.recalled else nullcontext():
                where = f"launch {one.sample.launch + 1} of {experiment.launches}"
                advance(1.0, f"{where}, {one.sample.row}")
    return Measured(
        rows=experiment.rows,
        samples=tuple(one.sample for one in taken),
        conditions=conditions(start, take_snapshot()),
        launches=experiment.launches,
        config_sha256="",
        options=its.options(machine),
        remarks=its.remarks(experiment.rows, taken, tables),
        skipped=skipped,
        warnings=shadowed_warnings() if any(row.times_page_tables for row in rows) else (),
    )


def rows_left_out(its: Live[Row], rows: Iterable[Row], journal: Journal) -> dict[str, str]:
    """Return rows that cannot be measured here and the reasons, as of the start of the run.

    Raises CannotRunHere if a row that could be measured then no longer can, since its samples would
    be lost.
    """
    now = {row.name: reason for row in rows if (reason := its.why_not(row))}
    began: dict[str, str] = journal.settle("skipped", now)
    for name, reason in now.items():
        if name not in began:
            raise CannotRunHere(f"{name}: it could be measured when the run began; now {reason}")
    return began


def running_kernel(machine: Machine) -> BuiltKernel:
    """Describe the running kernel for the receipt; ream did not build it."""
    version = Path("/proc/version").read_text(encoding="utf-8", errors="replace")
    release = machine.kernel or "unknown"
    return BuiltKernel(
        tree=f"the running kernel, {release}",
        tree_key=hashlib.sha256(version.encode()).hexdigest(),
        version=release,
        compiler=_compiler(version),
        config_sha256="",
        variants={RUNNING: ()},
    )


def _compiler(version: str) -> str:
    """The compiler in /proc/version: "Linux version R (user@host) (gcc (Distro) 12.2.0, GNU ld"."""
    named = re.search(r"\(((?:gcc|clang|Debian clang)[^,]*)", version)
    return named[1] if named else "unknown compiler"
