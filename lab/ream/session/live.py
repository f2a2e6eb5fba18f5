# SPDX-License-Identifier: GPL-2.0-only
"""A run of the live stage: the kernel of this machine, through system calls."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ream.counted import counted
from ream.errors import CannotRunHere
from ream.experiment import (
    RUNNING,
    STRUCT_PAGE_BYTES,
    Compact,
    CompactRow,
    Experiment,
    Fork,
    ForkRow,
    Migrate,
    MigrateRow,
)
from ream.measure.compaction import Compacted
from ream.measure.sample import NO_EXTRA, Sample
from ream.progress import Reporter
from ream.published import Table, lookup
from ream.record.journal import Journal
from ream.record.machine import Machine, conditions, take_snapshot
from ream.record.receipt import Kernel
from ream.record.record import RecordWriter
from ream.session.kept import Memory
from ream.session.request import Measured, Request
from ream.stage.live import FOLIO_KIB, FolioSample, Recall, measure_folios, why_not
from ream.stage.live_compact import (
    HUGE_BYTES,
    MODES,
    LiveCompactSample,
    measure_compactions,
    remarks_of,
    why_not_compact,
)
from ream.stage.live_migrate import MoveSample, measure_moves, why_not_move

DISPLACED_L3 = 2
"""Times the last-level cache that is written before each operation, so that it begins cold."""


LiveRow = ForkRow | MigrateRow | CompactRow
"""What can be measured through system calls alone."""


def rows_of(experiment: Experiment) -> tuple[LiveRow, ...]:
    """Rows of an experiment that has a live stage; none of others."""
    return experiment.rows if isinstance(experiment, Fork | Migrate | Compact) else ()


def why_not_row(row: LiveRow) -> str | None:
    """Why a row cannot be measured on this machine; None if it can."""
    if isinstance(row, CompactRow):
        return why_not_compact(row.nr_huge, row.buffer_bytes, row.reserve_bytes)
    kib = row.folio_bytes >> 10
    if isinstance(row, MigrateRow):
        return why_not_move(kib, row.buffer_bytes)
    return why_not(kib, row.mapping_bytes)


def measure_live(
    request: Request,
    tables: Sequence[Table],
    *,
    machine: Machine,
    work: Path,
    record: RecordWriter,
    reporter: Reporter,
) -> Measured:
    """Measure what can be measured here; rows that cannot are told, with the reason.

    Raises CannotRunHere if none can, and what measuring raises.
    """
    experiment = request.experiment
    all_rows = rows_of(experiment)
    if not all_rows:
        raise CannotRunHere(f"{experiment.name} has no live stage")
    skipped = rows_left_out(all_rows, record.journal)
    rows = [row for row in all_rows if row.name not in skipped]
    if not rows:
        raise CannotRunHere(next(iter(skipped.values())))
    for reason, names in _by_reason(skipped).items():
        reporter.step(f"{counted(len(names), 'row')} not run: {reason}")
    start = take_snapshot()
    forks = any(isinstance(row, ForkRow) for row in rows)
    displaced = DISPLACED_L3 * (machine.cache_bytes(3) or machine.cache_bytes(2) or 0)
    taken: list[_Taken] = []
    memory = Memory(record.journal)
    with reporter.measuring(float(experiment.launches * sum(it.rounds for it in rows))) as advance:
        tools = _Tools(work, reporter.step, memory.recall)
        for one in _samples(request, rows, displaced, tools):
            record.append(one.sample, one.compacted.extra() if one.compacted else NO_EXTRA)
            taken.append(one)
            with reporter.again() if memory.recalled else nullcontext():
                advance(1.0, f"launch {one.sample.launch + 1} of {experiment.launches}, {one.row}")
    samples = [one.sample for one in taken]
    return Measured(
        rows=experiment.rows,
        samples=tuple(samples),
        conditions=conditions(start, take_snapshot()),
        launches=experiment.launches,
        config_sha256="",
        options={"displace_bytes": displaced} if forks else {},
        remarks=remarks([row for row in all_rows if isinstance(row, ForkRow)], samples, tables)
        | _compact_remarks(taken),
        skipped=skipped,
        compacted=tuple(one.compacted for one in taken if one.compacted),
    )


def rows_left_out(rows: Iterable[LiveRow], journal: Journal) -> dict[str, str]:
    """Rows that cannot be measured here, each with its reason: those of when the run began.

    Raises CannotRunHere if one that could be then cannot any more: what it has would be lost.
    """
    now = {row.name: reason for row in rows if (reason := why_not_row(row))}
    began: dict[str, str] = journal.settle("skipped", now)
    for name, reason in now.items():
        if name not in began:
            raise CannotRunHere(f"{name}: it could be measured when the run began; now {reason}")
    return began


def _by_reason(skipped: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, reason in skipped.items():
        found.setdefault(reason, []).append(name)
    return found


@dataclass(frozen=True)
class _Group:
    """Rows of one size of memory and number of rounds, which one workload does."""

    nr_bytes: int
    rounds: int


@dataclass(frozen=True)
class _Taken:
    """A sample, and what else is known of it."""

    sample: Sample
    compacted: Compacted | None = None
    said: LiveCompactSample | None = None

    @property
    def row(self) -> str:
        return self.sample.row


@dataclass(frozen=True)
class _Tools:
    """What every workload is run with."""

    work: Path
    step: Callable[[str], None]
    recall: Recall


def _samples(
    request: Request,
    rows: Sequence[LiveRow],
    displace_bytes: int,
    tools: _Tools,
) -> Iterator[_Taken]:
    """Every sample, as it comes."""
    groups: dict[_Group, list[LiveRow]] = {}
    for row in rows:
        nr_bytes = row.mapping_bytes if isinstance(row, ForkRow) else row.buffer_bytes
        groups.setdefault(_Group(nr_bytes, row.rounds), []).append(row)
    for group, its in groups.items():
        forks = [row for row in its if isinstance(row, ForkRow)]
        moves = [row for row in its if isinstance(row, MigrateRow)]
        if forks:
            for sample in _forks(request, group, forks, displace_bytes, tools):
                yield _Taken(sample)
        if moves:
            for sample in _moves(request, group, moves, tools):
                yield _Taken(sample)
        yield from _compactions(
            request,
            group,
            [row for row in its if isinstance(row, CompactRow)],
            tools,
        )


def _sizes(rows: Iterable[ForkRow | MigrateRow]) -> list[int]:
    found = {row.folio_bytes >> 10 for row in rows}
    return [kib for kib in FOLIO_KIB if kib in found]


def _forks(
    request: Request,
    group: _Group,
    rows: Sequence[ForkRow],
    displace_bytes: int,
    tools: _Tools,
) -> Iterator[Sample]:
    wanted = {(str(row.operation), row.folio_bytes >> 10): row for row in rows}
    for said in measure_folios(
        _sizes(rows),
        mapping_bytes=group.nr_bytes,
        rounds=group.rounds,
        launches=request.experiment.launches,
        seed=request.seed,
        work=tools.work,
        step=tools.step,
        recall=tools.recall,
        ops=tuple(dict.fromkeys(op for op, _ in wanted)),
        displace_bytes=displace_bytes,
    ):
        if row := wanted.get((said.op, said.folio_kib)):
            yield sample_of(said, row)


def _moves(
    request: Request,
    group: _Group,
    rows: Sequence[MigrateRow],
    tools: _Tools,
) -> Iterator[Sample]:
    wanted = {row.folio_bytes >> 10: row for row in rows}
    for said in measure_moves(
        _sizes(rows),
        buffer_bytes=group.nr_bytes,
        rounds=group.rounds,
        launches=request.experiment.launches,
        seed=request.seed,
        work=tools.work,
        step=tools.step,
        recall=tools.recall,
    ):
        yield sample_of(said, wanted[said.folio_kib])


def _compactions(
    request: Request,
    group: _Group,
    rows: Sequence[CompactRow],
    tools: _Tools,
) -> Iterator[_Taken]:
    """Rows that differ in their mode only take turns."""
    alike: dict[tuple[int, int | None, int], dict[str, CompactRow]] = {}
    for row in rows:
        same = 0
        while row.mode in alike.get((row.nr_huge, row.reserve_bytes, same), {}):
            same += 1
        alike.setdefault((row.nr_huge, row.reserve_bytes, same), {})[row.mode] = row
    for (nr_huge, reserve, _), wanted in alike.items():
        for visit in measure_compactions(
            [mode for mode in MODES if mode in wanted],
            nr_huge=nr_huge,
            buffer_bytes=group.nr_bytes,
            reserve=reserve,
            rounds=group.rounds,
            launches=request.experiment.launches,
            seed=request.seed,
            work=tools.work,
            step=tools.step,
            recall=tools.recall,
        ):
            row = wanted[visit.mode]
            yield taken_of(visit.sample, row, launch=visit.launch, round_number=visit.round)


def taken_of(said: LiveCompactSample, row: CompactRow, *, launch: int, round_number: int) -> _Taken:
    """What the workload said of huge pages, as a record and the report have it.

    User time is the hog's where there is one: who faults has next to none.
    """
    sample = Sample(
        row=row.name,
        launch=launch,
        round=round_number,
        role="variant",
        subject=RUNNING,
        threads=1,
        time_ns=said.time_ns,
        nr_bytes=said.allocated * HUGE_BYTES,
        verified=not said.wrong_words,
        cpu_ns=said.machine.busy_ns,
    )
    compacted = Compacted(
        row=row.name,
        launch=launch,
        subject=RUNNING,
        asked=said.asked,
        allocated=said.allocated,
        time_ns=said.time_ns,
        longest_ns=said.longest_ns,
        page_copy_ns=None,
        user_ns=said.user_ns + (said.hog_ns or 0),
        system_ns=said.system_ns,
        idle_ns=None,
        hog_iterations=said.hog_iterations,
        counters=said.counters,
        verified=sample.verified,
        round=round_number,
        ballast=said.ballast_bytes // HUGE_BYTES,
        machine=said.machine,
    )
    return _Taken(sample, compacted, said)


def _compact_remarks(taken: Iterable[_Taken]) -> dict[str, tuple[str, ...]]:
    by_row: dict[str, list[LiveCompactSample]] = {}
    for one in taken:
        if one.said:
            by_row.setdefault(one.row, []).append(one.said)
    return {row: tuple(remarks_of(said)) for row, said in by_row.items()}


def sample_of(said: FolioSample | MoveSample, row: LiveRow) -> Sample:
    """What a workload said of one operation, as a record has it."""
    entries = said.nr_ptes * STRUCT_PAGE_BYTES if isinstance(said, FolioSample) else said.nr_bytes
    return Sample(
        row=row.name,
        launch=said.launch,
        round=said.round,
        role="variant",
        subject=RUNNING,
        threads=1,
        time_ns=said.time_ns,
        nr_bytes=entries,
        verified=said.verified,
        cpu_ns=said.cpu_ns if isinstance(said, MoveSample) else None,
    )


def remarks(
    rows: Iterable[ForkRow], samples: Iterable[Sample], tables: Sequence[Table]
) -> dict[str, tuple[str, ...]]:
    """Of each row: how it compares with base pages, here and in the published table.

    Without batches all sizes took the same time, so the 4 KiB row of a kernel that has them is
    what a kernel without them would need for every size.
    """
    times: dict[str, list[int]] = {}
    for sample in samples:
        times.setdefault(sample.row, []).append(sample.time_ns)
    typical = {name: median(values) for name, values in times.items()}
    base = {row.operation: row for row in rows if row.order == 0 and row.name in typical}
    return {
        row.name: tuple(_remarks(row, base[row.operation], typical, tables))
        for row in rows
        if row.name in typical and row.operation in base and row.order
    }


def _remarks(
    row: ForkRow, base: ForkRow, typical: Mapping[str, float], tables: Sequence[Table]
) -> Iterator[str]:
    here = typical[row.name] / typical[base.name]
    text = f"{here:.2f} of the 4 KiB row"
    if row.published and base.published:
        table = lookup(tables, row.published[0].id)
        refs = (row.published[0], base.published[0])
        theirs, of_base = (table.row(ref.params).values.get("published") for ref in refs)
        if theirs and of_base:
            text += f"; in the published table, with batches, {theirs / of_base:.2f}"
    yield text


def running_kernel(machine: Machine) -> Kernel:
    """For the receipt: the kernel that was measured, which nobody built for us."""
    version = Path("/proc/version").read_text(encoding="utf-8", errors="replace")
    release = machine.kernel or "unknown"
    return Kernel(
        tree=f"the running kernel, {release}",
        tree_key=hashlib.sha256(version.encode()).hexdigest(),
        version=release,
        compiler=_compiler(version),
        config_sha256="",
        variants={RUNNING: ()},
    )


def _compiler(version: str) -> str:
    """What /proc/version says of it: "Linux version R (who@where) (gcc (Distro) 12.2.0, GNU ld"."""
    named = re.search(r"\(((?:gcc|clang|Debian clang)[^,]*)", version)
    return named[1] if named else "unknown compiler"
