# SPDX-License-Identifier: GPL-2.0-only
"""null in the live stage: system calls that do nothing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ream.errors import VerificationFailed
from ream.experiment import RUNNING
from ream.measure.sample import Sample
from ream.measure.taken import Taken
from ream.session.live import Live
from ream.stage.live import Visits
from ream.stage.workload import Workload, build_workload, run_workload

from .rows import NullRow

GETPPID = Workload.of(Path(__file__).parent, "getppid", "program")
DEADLINE_S = 600.0


def taken(rows: Sequence[NullRow], visits: Visits) -> Iterator[Taken]:
    """A visit of each row in each launch."""
    program = build_workload(GETPPID, visits.work)
    for launch in range(visits.launches):
        for row in rows:
            argv = (str(program), str(row.size), str(row.rounds))

            def visit(argv: Sequence[str] = argv) -> str:
                return run_workload(argv, visits.work, DEADLINE_S)

            for line in visits.recall(f"{row.name} {launch}", visit).splitlines():
                if "round" in (said := json.loads(line)):
                    yield Taken(sample_of(said, row, launch, RUNNING))


def sample_of(said: Mapping[str, int], row: NullRow, launch: int, subject: str) -> Sample:
    """What the program said of one round, as a record has it; raises VerificationFailed."""
    if not said["verified"]:
        raise VerificationFailed(f"{row.name}, {subject}: getppid() gave another parent")
    return Sample(
        row=row.name,
        launch=launch,
        round=said["round"],
        role="variant",
        subject=subject,
        threads=1,
        time_ns=said["time_ns"],
        nr_bytes=row.written_bytes,
        verified=True,
    )


LIVE: Live[NullRow] = Live(
    why_not=lambda _row: None,
    taken=taken,
    plan_lines=lambda _rows: (),
    programs=(GETPPID,),
)
