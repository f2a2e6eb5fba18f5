# SPDX-License-Identifier: GPL-2.0-only
"""mprotect in the live stage: whole system calls over memory in folios of each size."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from ream.experiment.shape import STRUCT_PAGE_BYTES
from ream.measure.taken import Taken
from ream.published import Table
from ream.record.machine import Machine, read_machine
from ream.session.live import Live
from ream.stage.live import Visits, sample_of

from .jobs import Job, JobSample, jobs_of, settings_lines, visited, why_not_job
from .programs import MPROTECT_FOLIOS
from .rows import MprotectRow
from .toggles import job_of

DISPLACED_L3 = 2
"""Times the last-level cache that is written before each operation of a cold row."""


def displaced_bytes(machine: Machine) -> int:
    """Other memory that is written before each operation of a cold row."""
    return DISPLACED_L3 * (machine.cache_bytes(3) or machine.cache_bytes(2) or 0)


def jobs(rows: Iterable[MprotectRow]) -> dict[str, Job]:
    """The job of each row, by the row's name."""
    displaced = displaced_bytes(read_machine())
    return {row.name: job_of(row, displaced) for row in rows}


def taken(rows: Sequence[MprotectRow], visits: Visits) -> Iterator[Taken]:
    """Every sample of rows; those of one mapping are one process's, there and back."""
    its = jobs(rows)
    wanted = {(its[row.name].name, str(row.operation)): row for row in rows}
    for job, said in visited(MPROTECT_FOLIOS, jobs_of(its.values()), visits):
        row = wanted.get((job.name, said.op))
        if row is not None and said.round < row.rounds:
            sample = sample_of(said, row.name, said.nr_ptes * STRUCT_PAGE_BYTES)
            yield Taken(sample, said=said)


def remarks(
    rows: Sequence[MprotectRow], taken: Sequence[Taken], tables: Sequence[Table]
) -> dict[str, tuple[str, ...]]:
    """Of each row: how it compares with base pages, and what its pages were like afterwards."""
    del tables
    its: dict[str, list[JobSample]] = {}
    for one in taken:
        if isinstance(one.said, JobSample):
            its.setdefault(one.sample.row, []).append(one.said)
    times = {name: median(one.time_ns for one in said) for name, said in its.items()}
    return {
        row.name: (
            *_of_base(row, rows, times),
            *afterwards(its[row.name]),
        )
        for row in rows
        if row.name in its
    }


def _of_base(
    row: MprotectRow, rows: Sequence[MprotectRow], times: Mapping[str, float]
) -> Iterator[str]:
    """What batches gain or lose on the same kernel: base pages are in none."""
    alike = {"name": "", "folio_bytes": 4096, "published": (), "differs": ()}
    same = row.model_copy(update=alike)
    for other in rows:
        if not other.order and other.name in times and other.model_copy(update=alike) == same:
            if row.order:
                yield f"{times[row.name] / times[other.name]:.2f} of the 4 KiB row"
            return


def afterwards(said: Sequence[JobSample]) -> Iterator[str]:
    """What is remarkable about pages after a change there and back."""
    pages = said[0].nr_ptes
    if faults := max(one.write_faults or 0 for one in said):
        yield f"writing to {pages} pages took up to {faults} faults afterwards"
    if dirt := max(one.soft_dirtied or 0 for one in said):
        yield f"up to {dirt} of {pages} pages are soft-dirty afterwards, and nobody wrote to them"


LIVE: Live[MprotectRow] = Live(
    why_not=lambda row: why_not_job(job_of(row)),
    taken=taken,
    plan_lines=lambda rows: settings_lines(map(job_of, rows)),
    programs=(MPROTECT_FOLIOS,),
    remarks=remarks,
    options=lambda machine: {"displace_bytes": displaced_bytes(machine)},
)
