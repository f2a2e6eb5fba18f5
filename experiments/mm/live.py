# SPDX-License-Identifier: GPL-2.0-only
"""mm in the live stage: the same programs as C programs, which make the system calls."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ream.command import Command, finished, last_words, run
from ream.errors import VerificationFailed
from ream.experiment import RUNNING
from ream.measure.sample import Sample
from ream.measure.taken import Taken
from ream.program.reproducer import reproducer
from ream.program.text import parse
from ream.session.live import Live
from ream.stage.live import Visits
from ream.stage.workload import compile_command

from .rows import MmRow

DEADLINE_S = 60.0


def taken(rows: Sequence[MmRow], visits: Visits) -> Iterator[Taken]:
    """A visit of each row in each launch, in which each round is a process of its own."""
    programs = {row.name: _built(row, visits.work) for row in rows}
    for launch in range(visits.launches):
        for row in rows:
            do = partial(_visit, programs[row.name], row)
            for number, line in enumerate(visits.recall(f"{row.name} {launch}", do).splitlines()):
                yield Taken(_sample(json.loads(line), row, launch, number))


def _built(row: MmRow, work: Path) -> Path:
    source = work / f"{row.name}.c"
    source.write_text(reproducer(parse(row.text, row.name)))
    run(compile_command(source.with_suffix(""), str(source), work=work, arch=None))
    return source.with_suffix("")


def _visit(program: Path, row: MmRow) -> str:
    """The line of the measured step in each round. Raises VerificationFailed."""
    cpu = str(max(os.sched_getaffinity(0)))
    lines = []
    for _ in range(row.rounds):
        argv = ("taskset", "-c", cpu, str(program))
        code, said, wrong = finished(Command(argv, program.parent, DEADLINE_S), tied=True)
        timed = [line for line in said.splitlines() if '"timed_ns"' in line]
        if code or not timed or json.loads(timed[0])["returned"] < 0:
            words = last_words(wrong or said)
            raise VerificationFailed(f"{row.name}: the program ended with {code}: {words}")
        lines += timed
    return "\n".join(lines)


def _sample(said: Mapping[str, Any], row: MmRow, launch: int, number: int) -> Sample:
    return Sample(
        row=row.name,
        launch=launch,
        round=number,
        role="variant",
        subject=RUNNING,
        threads=1,
        time_ns=max(1, said["timed_ns"]),
        nr_bytes=row.written_bytes,
        verified=True,
    )


LIVE: Live[MmRow] = Live(
    why_not=lambda _row: None,
    taken=taken,
    plan_lines=lambda _rows: (),
    programs=(),
)
