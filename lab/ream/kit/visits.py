# SPDX-License-Identifier: GPL-2.0-only
"""Visits of the running kernel in a kit, for rows that time only a part of a call.

A visit is a run of a program that times whole calls. The experiment's own function selects the
visits and reads their output: when the kit is made, and again when its result is read.
"""

import hashlib
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ream.errors import CannotRunHere
from ream.experiment import Row
from ream.kit.contents import ExperimentOfKit, VisitOfKit
from ream.kit.result import Result
from ream.measure.whole import LeftOut
from ream.progress import Reporter
from ream.record.machine import Machine
from ream.session.native import Part
from ream.session.request import Request
from ream.stage.hosted import programs_of
from ream.stage.live import Elsewhere, elsewhere, kernel_release
from ream.stage.workload import Workload, build_workload, heard, run_workload

DEADLINE_S = 180.0


class Visits:
    """Collects the visits that rows need, and runs each once on this machine."""

    def __init__(self, stage: Path, experiment: str, reporter: Reporter) -> None:
        self._stage = stage
        self._experiment = experiment
        self._reporter = reporter
        self._programs: dict[str, Path] = {}
        self.found: list[VisitOfKit] = []
        self.launches: list[tuple[int, str, int]] = []
        """Launch number, program, seconds. Number 0 sorts them with programs' first launches."""

    def note(self, request: Request, part: Part, rows: Sequence[Row]) -> None:
        """Add the visits that rows of a program need, if any."""
        measure = part.its.left_out
        if measure is None or part.bench.emulator:
            return
        with (
            tempfile.TemporaryDirectory() as work,
            elsewhere(Elsewhere(kernel_release(), self._tried)),
        ):
            measure(rows, seed=request.seed, work=Path(work), step=self._reporter.step)

    def _tried(self, workload: Workload, words: Sequence[str]) -> str:
        name = f"{self._experiment}-{workload.name}-{len(self.found)}"
        place = self._stage / "l" / name
        place.mkdir(parents=True)
        program = place / "runner"
        if workload.name in self._programs:
            program.hardlink_to(self._programs[workload.name])
        else:
            shutil.move(build_workload(workload, place), program)
            self._programs[workload.name] = program
        began = time.monotonic()
        said = run_workload((str(program), *words), place, DEADLINE_S)
        seconds = max(1, round(time.monotonic() - began))
        argv = (f"./l/{name}/runner", *words)
        (place / "words").write_text("".join(f"{word}\n" for word in argv))
        (place / "plan-any").touch()
        sha256 = hashlib.sha256(program.read_bytes()).hexdigest()
        self.found.append(
            VisitOfKit(name=name, program=workload.name, words=tuple(words), sha256=sha256)
        )
        self.launches.append((0, name, seconds))
        return said


def left_out_of(
    request: Request,
    its: ExperimentOfKit,
    result: Result,
    rows: Sequence[Row],
    *,
    machine: Machine,
) -> Mapping[str, LeftOut | str]:
    """Return what the rest of the call took there, by row that times only a part, or why not."""

    def say(workload: Workload, words: Sequence[str]) -> str:
        for visit in its.visits:
            if (visit.program, visit.words) == (workload.name, tuple(words)):
                said = result.said_of_visit(visit)
                if said is None:
                    break
                out = "".join(f"{line}\n" for line in said.lines)
                return heard(workload.name, said.code, out, said.words)
        raise CannotRunHere(f"the kit did not run {workload}")

    found: dict[str, LeftOut | str] = {}
    there = Elsewhere(machine.kernel or "of an unknown release", say)
    with tempfile.TemporaryDirectory() as work, elsewhere(there):
        for one in programs_of(request.experiment):
            own = [row for row in rows if one.runs(row)]
            if one.left_out is not None and own:
                found |= one.left_out(own, seed=request.seed, work=Path(work), step=_nothing)
    return found


def _nothing(_step: str) -> None:
    """Report no progress: the steps took place on the other machine."""
