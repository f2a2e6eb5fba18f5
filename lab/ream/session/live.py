# SPDX-License-Identifier: GPL-2.0-only
"""A run of the live stage: the kernel of this machine, through system calls."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ream.errors import CannotRunHere
from ream.experiment import RUNNING, STRUCT_PAGE_BYTES, Fork, ForkRow
from ream.measure.sample import Sample
from ream.progress import Reporter
from ream.published import Table, lookup
from ream.record.machine import Machine, conditions, take_snapshot
from ream.record.receipt import Kernel
from ream.record.record import RecordWriter
from ream.session.request import Measured, Request
from ream.stage.live import FOLIO_KIB, FolioSample, measure_folios, why_not

DISPLACED_L3 = 2
"""Times the last-level cache that is written before each operation, so that it begins cold."""


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

    Raises CannotRunHere if none can, and what measure_folios() raises.
    """
    experiment = request.experiment
    if not isinstance(experiment, Fork):
        raise CannotRunHere(f"{experiment.name} has no live stage")
    skipped = {
        row.name: reason
        for row in experiment.rows
        if (reason := why_not(row.folio_bytes >> 10, row.mapping_bytes))
    }
    rows = [row for row in experiment.rows if row.name not in skipped]
    if not rows:
        raise CannotRunHere(next(iter(skipped.values())))
    for reason, names in _by_reason(skipped).items():
        reporter.step(f"{len(names)} rows are not run: {reason}")
    start = take_snapshot()
    displaced = DISPLACED_L3 * (machine.cache_bytes(3) or machine.cache_bytes(2) or 0)
    samples = _measure(
        request, rows, displace_bytes=displaced, work=work, record=record, reporter=reporter
    )
    return Measured(
        rows=experiment.rows,
        samples=samples,
        conditions=conditions(start, take_snapshot()),
        launches=experiment.launches,
        config_sha256="",
        options={"displace_bytes": displaced},
        remarks=remarks(experiment.rows, samples, tables),
        skipped=skipped,
    )


def _by_reason(skipped: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, reason in skipped.items():
        found.setdefault(reason, []).append(name)
    return found


@dataclass(frozen=True)
class _Group:
    """Rows of one size of mapping and number of rounds, which one workload does."""

    mapping_bytes: int
    rounds: int


def _measure(
    request: Request,
    rows: Sequence[ForkRow],
    *,
    displace_bytes: int,
    work: Path,
    record: RecordWriter,
    reporter: Reporter,
) -> tuple[Sample, ...]:
    """Every sample, in the record as soon as it is known."""
    groups: dict[_Group, list[ForkRow]] = {}
    for row in rows:
        groups.setdefault(_Group(row.mapping_bytes, row.rounds), []).append(row)
    launches = request.experiment.launches
    samples: list[Sample] = []
    total = sum(launches * row.rounds for row in rows)
    with reporter.measuring(float(total)) as advance:
        for group, its in groups.items():
            wanted = {(str(one.operation), one.folio_bytes >> 10): one for one in its}
            said = measure_folios(
                [kib for kib in FOLIO_KIB if any(size == kib for _, size in wanted)],
                mapping_bytes=group.mapping_bytes,
                rounds=group.rounds,
                launches=launches,
                seed=request.seed,
                work=work,
                step=reporter.step,
                ops=tuple(dict.fromkeys(op for op, _ in wanted)),
                displace_bytes=displace_bytes,
            )
            for one in said:
                if asked := wanted.get((one.op, one.folio_kib)):
                    samples.append(sample_of(one, asked))
                    record.append(samples[-1])
                    advance(1.0, f"launch {one.launch + 1} of {launches}, {asked.name}")
    return tuple(samples)


def sample_of(said: FolioSample, row: ForkRow) -> Sample:
    """What the workload said, as a record has it."""
    return Sample(
        row=row.name,
        launch=said.launch,
        round=said.round,
        role="variant",
        subject=RUNNING,
        threads=1,
        time_ns=said.time_ns,
        nr_bytes=said.nr_ptes * STRUCT_PAGE_BYTES,
        verified=said.verified,
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
