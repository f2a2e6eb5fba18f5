# SPDX-License-Identifier: GPL-2.0-only
"""The summary of one finished run that the history lists."""

import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import Field, ValidationError

from ream.errors import ReamError
from ream.experiment import BEFORE, is_copy
from ream.history.ratios import lines
from ream.record.archive import ARCHIVE, archive_of, archives_of, names_in
from ream.record.packed import has, lines_of, place_of
from ream.record.parts import machine_key
from ream.record.record import LETTER, RECEIPT, RUN, SAMPLES, TABLE, Record, changed
from ream.record.sums import SUMS, missing
from ream.report.contract import RowResult, Summary
from ream.values import Sealed, Texts, Value

_TIME = re.compile(r"(\d{8}T\d{6}Z)-")
_DIRECTORY = re.compile(r"\d{8}T\d{6}Z-[\w.+-]+")
_NEEDED = (RUN, RECEIPT, SAMPLES)
_MADE_AGAIN = (TABLE, LETTER)
"""Files that `ream report` can generate from run.json."""


class VariantEntry(Value):
    """A variant's ratio with its interval, and its effect."""

    ratio: float | None
    low: float | None
    high: float | None
    effect: str | None


class RowEntry(Value):
    """The verdicts and variants of one row."""

    unit: str
    verdicts: Texts
    """One verdict for each published table that the row is compared with."""
    variants: Sealed[str, VariantEntry]
    """The ratio of each variant, except `before`."""


class Headline(Value):
    """The geometric mean of a variant's ratios to `before`, over all rows with one unit."""

    variant: str
    unit: str
    ratio: float
    nr_rows: int


class HistoryEntry(Value):
    """One finished run in the history."""

    run: str
    experiment: str
    stage: str
    machine: str
    """The machine's id, or its description if the record has none."""
    machine_line: str
    tree: str
    benchmark: str | None
    rows: Sealed[str, RowEntry]
    skipped: Texts
    """Rows that did not run."""
    nr_doubts: int
    """The number of doubts about the run; see Summary.doubts."""
    fault: str | None = None
    """The damage to the record, if the other fields could still be read."""

    def headlines(self, rows: Iterable[str] | None = None) -> tuple[Headline, ...]:
        """Each variant's geometric mean over rows; rows: only these."""
        logs: dict[tuple[str, str], list[float]] = {}
        for name, row in self.rows.items():
            if rows is not None and name not in rows:
                continue
            for variant, its in row.variants.items():
                if not is_copy(variant) and its.ratio is not None:
                    logs.setdefault((variant, row.unit), []).append(math.log(its.ratio))
        return tuple(
            Headline(
                variant=variant, unit=unit, ratio=math.exp(fmean(its_logs)), nr_rows=len(its_logs)
            )
            for (variant, unit), its_logs in logs.items()
        )

    def verdicts(self, rows: Iterable[str] | None = None) -> Mapping[str, int]:
        """The number of published tables with each verdict; rows: only of these."""
        wanted = self.rows if rows is None else rows
        return Counter(
            word for name, row in self.rows.items() if name in wanted for word in row.verdicts
        )


class Damaged(Value):
    """A record that cannot be listed, with the reason. It is not changed."""

    name: str
    fault: str


class Listed(Value):
    """The history's data on one directory: an entry, or the reason why there is none."""

    entry: HistoryEntry | None = None
    damaged: Damaged | None = None


class Stamp(Value):
    """The directory of a run, with sizes and times of its files that reveal a change."""

    name: str
    files: str = Field(repr=False)


def started(name: str) -> datetime | None:
    """The time in a run's id; None for a directory with another name."""
    if found := _TIME.match(name):
        try:
            return datetime.strptime(found[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError:
            return None
    return None


def stamps(runs: Path) -> Iterator[Stamp]:
    """Every record in `runs`, every directory that once contained one, and damaged archives.

    Directories that vanish meanwhile, and names that are not printable, are left out. A missing
    `runs` has no records. Raises OSError if `runs` cannot be read.
    """
    try:
        archives = archives_of(runs)
        paths = sorted({*runs.iterdir(), *(runs / name for name in archives)})
    except FileNotFoundError:
        return
    for path in paths:
        if path.name.startswith(".") or not path.name.isprintable():
            continue  # one that is not finished, or not ours
        archive = archive_of(path) if path.name in archives else None
        if path.suffix == ARCHIVE and path not in archives.values() and _archive_fault(path):
            archive = path
        if archive is not None:
            yield Stamp(name=path.name, files=_file_stamp(archive))
            continue
        files = [_file_stamp(place_of(path / name)) for name in (*_NEEDED, SUMS)]
        looks_so = _DIRECTORY.fullmatch(path.name) and any(file != "-" for file in files)
        if files[0] != "-" or looks_so:
            yield Stamp(name=path.name, files=" ".join(files))


def read(path: Path) -> Listed | None:
    """Read the record of this path; None if it has vanished."""
    if path.suffix == ARCHIVE and (fault := _archive_fault(path)):
        return Listed(damaged=Damaged(name=path.name, fault=fault))
    try:
        entry = _entry(Record.load(str(path.absolute()), path.parent))
    except (ReamError, ValidationError, OSError) as cause:
        if not is_there(path):
            return None
        missing = [name for name in _NEEDED if path.is_dir() and not has(path / name)]
        said = f"{', '.join(missing)} missing" if missing else _one_line(cause)
        return Listed(damaged=Damaged(name=path.name, fault=said))
    return Listed(entry=entry)


def is_there(path: Path) -> bool:
    """Whether the path of a record is still one, or at least exists."""
    return path.exists() or archive_of(path) is not None


def _archive_fault(path: Path) -> str | None:
    try:
        names_in(path)
    except OSError as cause:
        return cause.strerror
    return None


def faults(path: Path) -> tuple[str, ...]:
    """Every fault of a record's files, after reading all of them, including every sample."""
    listed = read(path)
    if listed is None:
        return ()
    found = [*changed(path)]
    if listed.damaged is not None:
        return tuple(found) or (listed.damaged.fault,)
    record = Record.load(str(path.absolute()), path.parent)
    found += [f"{name} missing; `ream report` makes it again" for name in _missing_texts(path)]
    found += [
        f"{name} missing, of which {SUMS} has a checksum"
        for name in missing(path)
        if name not in (*_MADE_AGAIN, *_NEEDED)
    ]
    try:
        for _ in lines(record):
            pass
    except ReamError as cause:
        found.append(_one_line(cause))
    return tuple(found)


def _missing_texts(path: Path) -> list[str]:
    return [name for name in _MADE_AGAIN if not has(path / name)]


def _entry(record: Record) -> HistoryEntry:
    summary = Summary.from_object(record.run, source=str(record.path / RUN))
    return HistoryEntry(
        run=record.path.name,
        experiment=summary.experiment,
        stage=summary.stage,
        machine=machine_key(record),
        machine_line=summary.receipt.machine,
        tree=summary.receipt.tree,
        benchmark=_text(record.receipt.get("benchmark")),
        rows={row.row: _row(row) for row in summary.rows},
        skipped=tuple(row.row for row in summary.rows if row.skipped),
        nr_doubts=len(summary.doubts),
        fault=_cut(record.path / SAMPLES),
    )


def _row(row: RowResult) -> RowEntry:
    return RowEntry(
        unit=row.unit,
        verdicts=tuple(comparison.verdict for comparison in row.comparisons),
        variants={
            name: VariantEntry(
                ratio=result.ratio, low=result.low, high=result.high, effect=result.effect
            )
            for name, result in row.variants.items()
            if name != BEFORE
        },
    )


def _cut(samples: Path) -> str | None:
    """A sentence if the samples end in the middle of a line, as after a full disk; else None."""
    try:
        last = deque(lines_of(samples), maxlen=1)
    except OSError as cause:
        return f"{SAMPLES}: {cause.strerror}"
    return (
        None
        if all(line.endswith(b"\n") for line in last)
        else f"{SAMPLES} ends in the middle of a line"
    )


def _file_stamp(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return "-"
    # The first time can be set by anybody, the second only by writing.
    return f"{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _one_line(cause: Exception) -> str:
    return str(cause).splitlines()[0]
