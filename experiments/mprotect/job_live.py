# SPDX-License-Identifier: GPL-2.0-only
"""Rows whose samples jobs on the running kernel give; mremap uses this as well."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Generic, TypeVar

from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES, RowBase
from ream.measure.taken import Taken
from ream.published import Table
from ream.record.machine import Machine, read_machine
from ream.session.live import Live
from ream.stage.live import Visits, sample_of
from ream.stage.workload import Workload

from .jobs import Job, JobSample, jobs_of, settings_lines, visited, why_not_job

R = TypeVar("R", bound=RowBase)

DISPLACED_L3 = 2
"""Times the last-level cache that is written before each operation of a cold row."""

BASE_KIB = PAGE_BYTES >> 10

ALIKE = {"name": "", "folio_bytes": PAGE_BYTES, "published": (), "differs": ()}
"""Fields to overwrite so that rows compare equal if only the size of folios differs."""


def displaced_bytes(machine: Machine) -> int:
    """Other memory that is written before each operation of a cold row."""
    return DISPLACED_L3 * (machine.cache_bytes(3) or machine.cache_bytes(2) or 0)


@dataclass(frozen=True)
class JobRows(Generic[R]):
    """Rows of an experiment, as its program does them."""

    program: Workload
    job_of: Callable[[R, int], Job]
    """The job of a row; given the bytes that are displaced where it is cold."""
    operation_of: Callable[[R], str]

    def live(self) -> Live[R]:
        """The live stage of the experiment."""
        return Live(
            why_not=lambda row: why_not_job(self.job_of(row, 0)),
            taken=self.taken,
            plan_lines=lambda rows: settings_lines(self.job_of(row, 0) for row in rows),
            programs=(self.program,),
            remarks=remarks,
            options=lambda machine: {"displace_bytes": displaced_bytes(machine)},
        )

    def jobs(self, rows: Iterable[R]) -> dict[str, Job]:
        """The job of each row on this machine, by the row's name."""
        displaced = displaced_bytes(read_machine())
        return {row.name: self.job_of(row, displaced) for row in rows}

    def taken(self, rows: Sequence[R], visits: Visits) -> Iterator[Taken]:
        """Every sample of rows; those of one mapping are one process's."""
        its = self.jobs(rows)
        wanted = {(its[row.name].name, self.operation_of(row)): row for row in rows}
        for job, said in visited(self.program, jobs_of(its.values()), visits):
            row = wanted.get((job.name, said.op))
            if row is not None and said.round < row.rounds:
                sample = sample_of(said, row.name, said.nr_ptes * STRUCT_PAGE_BYTES)
                yield Taken(sample, said=said)


def remarks(
    rows: Sequence[R], taken: Sequence[Taken], tables: Sequence[Table]
) -> dict[str, tuple[str, ...]]:
    """Remarks by row: comparison with base pages, and the state of its pages afterwards."""
    del tables
    its: dict[str, list[JobSample]] = {}
    for one in taken:
        if isinstance(one.said, JobSample):
            its.setdefault(one.sample.row, []).append(one.said)
    times = {name: median(one.time_ns for one in said) for name, said in its.items()}
    return {
        row.name: (*_of_base(row, rows, times), *afterwards(its[row.name]))
        for row in rows
        if row.name in its
    }


def _of_base(row: R, rows: Sequence[R], times: Mapping[str, float]) -> Iterator[str]:
    """What batches gain or lose on the same kernel: base pages are in none."""
    same = row.model_copy(update=ALIKE)
    for other in rows:
        if other.name == row.name or other.name not in times:
            continue
        if other.params()["folio_kib"] == BASE_KIB and other.model_copy(update=ALIKE) == same:
            yield f"{times[row.name] / times[other.name]:.2f} of the 4 KiB row"
            return


def afterwards(said: Sequence[JobSample]) -> Iterator[str]:
    """What is remarkable about pages after a change there and back."""
    pages = said[0].nr_ptes
    if faults := max(one.write_faults or 0 for one in said):
        yield f"writing to {pages} pages took up to {faults} faults afterwards"
    if dirt := max(one.soft_dirtied or 0 for one in said):
        yield f"up to {dirt} of {pages} pages are soft-dirty afterwards, and nobody wrote to them"
