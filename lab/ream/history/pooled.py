# SPDX-License-Identifier: GPL-2.0-only
"""Pools the ratios of several runs on one type of CPU; a run is the replicate.

Launches of one run share what a run does not vary: the machine's neighbours, its huge pages, the
programs as they were linked on that day. The interval over the launches of one run is therefore too
narrow for a CPU type. A single run keeps its own interval and is labelled as one.
"""

import csv
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from ream.counted import counted
from ream.errors import BadUsage
from ream.experiment import BEFORE, CONTROL, is_copy, shown
from ream.measure.statistics import Estimate, over_launches, t_quantile
from ream.record.archive import paths_in
from ream.record.parts import cpu_type, part, rows_of, run_id
from ream.record.record import Record, is_record
from ream.report.numbers import interval, ratio_of
from ream.report.words import explained
from ream.width import table_line

REMOVED = "removed.tsv"
"""The file, beside records, with estimates of records that were replaced: those of kernels that are
still measured remain evidence."""
LEAST_RUNS = 2
"""The smallest number of runs that has an interval of its own."""
ID_DIGITS = 8
EARLIER = "*"
"""Marks kernels of which newer ones with the same name were measured elsewhere."""


@dataclass(frozen=True)
class RunRatio:
    """One run's ratio to `before` of one variant in one row, and what identifies both kernels."""

    run: str
    cpu: str
    """The type of CPU: its name, family and model."""
    experiment: str
    row: str
    variant: str
    kernels: str
    """The kernel's version, and the digests of the series of `before` and of the variant."""
    ratio: float
    low: float
    high: float
    launches: int


@dataclass(frozen=True)
class OverRuns:
    """The ratio of one pair of kernels on one type of CPU over runs."""

    estimate: Estimate
    """Over runs; for a single run, its own over launches."""
    runs: tuple[str, ...]
    earlier: bool = False
    """Whether newer kernels of this name were measured, on another type of CPU."""
    error: float = 0.0
    """The standard error of one run's log ratio that its own launches show, a root mean square."""

    @property
    def between(self) -> float | None:
        """The standard deviation of the log ratio between runs; None for a single run.

        Runs also differ by the error of each, which their launches show: its variance is taken off.
        """
        if len(self.runs) < LEAST_RUNS:
            return None
        logs = [math.log(one) for one in self.estimate.per_launch]
        return math.sqrt(max(0.0, statistics.variance(logs) - self.error**2))


Place = tuple[str, str, str]
"""The names of an experiment, a row and a variant."""
ByCpu = Mapping[str, OverRuns]


def pooled(ratios: Iterable[RunRatio]) -> dict[Place, ByCpu]:
    """The ratios of every place by type of CPU, each of the kernels of its newest run there.

    Runs of other kernels under the same name, such as an earlier form of a series, are left out.
    """
    at: dict[Place, dict[str, list[RunRatio]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(ratios, key=lambda one: one.run):
        at[one.experiment, one.row, one.variant][one.cpu].append(one)
    found: dict[Place, ByCpu] = {}
    for place, by_cpu in sorted(at.items()):
        newest = max((its[-1] for its in by_cpu.values()), key=lambda one: one.run).kernels
        found[place] = {cpu: _over_runs(its, newest) for cpu, its in sorted(by_cpu.items())}
    return found


def _over_runs(ratios: Sequence[RunRatio], newest: str) -> OverRuns:
    """The newest kernels' runs pooled; newest: the newest kernels on any type of CPU."""
    alike = [one for one in ratios if one.kernels == ratios[-1].kernels]
    runs, earlier = tuple(one.run for one in alike), ratios[-1].kernels != newest
    if len(alike) < LEAST_RUNS:
        (only,) = alike
        return OverRuns(Estimate(only.ratio, only.low, only.high, (only.ratio,)), runs, earlier)
    estimate = over_launches([math.log(one.ratio) for one in alike])
    assert estimate is not None
    errors = [
        math.log(one.high / one.low) / 2 / t_quantile(one.launches - 1)
        for one in alike
        if one.launches > 1
    ]
    error = math.sqrt(statistics.fmean(one**2 for one in errors)) if errors else 0.0
    return OverRuns(estimate, runs, earlier, error)


def between_runs(runs: Path, experiment: str, cpu: str) -> dict[str, float]:
    """The standard deviation of log ratios between runs on a type of CPU, by row.

    It is the root of the mean variance over the row's variants. Rows without two runs of the same
    kernels are absent.
    """
    variances: dict[str, list[float]] = defaultdict(list)
    for (_, row, _), by_cpu in pooled(ratios_in(runs, experiment)).items():
        if cpu in by_cpu and (between := by_cpu[cpu].between) is not None:
            variances[row].append(between**2)
    return {row: math.sqrt(statistics.fmean(its)) for row, its in variances.items()}


def coverage(ratios: Iterable[RunRatio], *, least_runs: int = 3) -> tuple[int, int]:
    """How often the interval of one run contains the mean of the other runs of the same kernels.

    Returns the number of times, and of how many. Places with fewer than least_runs runs on a type
    of CPU are left out.
    """
    alike: dict[tuple[str, ...], list[RunRatio]] = defaultdict(list)
    for one in ratios:
        alike[one.cpu, one.experiment, one.row, one.variant, one.kernels].append(one)
    held = tried = 0
    for its in alike.values():
        if len(its) < least_runs:
            continue
        for own in its:
            mean = statistics.fmean(math.log(one.ratio) for one in its if one is not own)
            held += math.log(own.low) <= mean <= math.log(own.high)
            tried += 1
    return held, tried


def ratios_in(runs: Path, experiment: str | None = None) -> Iterator[RunRatio]:
    """The ratios of all records in a directory, and of those that removed.tsv there keeps.

    experiment: only its records; None: those of all. Raises BadUsage for a damaged record or line.
    """
    of = f"-{experiment}-native-" if experiment else "-native-"
    for path in paths_in(runs):
        if of in path.name and is_record(path):
            yield from of_record(Record.load(str(path), runs))
    yield from (one for one in removed_in(runs) if experiment in (None, one.experiment))


def removed_in(runs: Path) -> Iterator[RunRatio]:
    """The ratios that removed.tsv in a directory keeps; none without it."""
    if (runs / REMOVED).is_file():
        yield from read_removed(runs / REMOVED)


def of_record(record: Record) -> Iterator[RunRatio]:
    """The timed ratios of a native record whose kernels and rows are those of the experiment.

    Records with other options, sources or architectures measure something else, and have none.
    """
    kernel, run = part(record.receipt, "kernel"), record.run
    timed = run.get("stage") == "native" and not record.receipt.get("count")
    if not timed or not has_own_sources(record):
        return
    series, cpu = part(kernel, "variants"), cpu_type(part(record.receipt, "machine"))
    for row, its in rows_of(record).items():
        if its.get("unit") != "ns" or its.get("asked_params"):
            continue
        for variant, found in part(its, "variants").items():
            if variant in (BEFORE, CONTROL) or is_copy(variant) or found.get("compared_with"):
                continue
            numbers = [found.get(name) for name in ("ratio", "low", "high", "launches")]
            if variant in series and None not in numbers:
                ids = f"{kernel.get('version')} {_ids(series, BEFORE)}:{_ids(series, variant)}"
                place = str(run.get("experiment")), row, variant
                yield RunRatio(run_id(record), cpu, *place, ids, *numbers)


def has_own_sources(record: Record) -> bool:
    """Whether all kernels of a record have the sources and options that its experiment is about."""
    kernel = part(record.receipt, "kernel")
    return not kernel.get("config") and not kernel.get("trees")


def _ids(series: Mapping[str, Any], variant: str) -> str:
    """The digests of a variant's series, by their diffs where the record has them."""
    its = series.get(variant) or []
    return "+".join(
        diff_id[:ID_DIGITS] if (diff_id := one.get("diff_id")) else f"mail-{one['id'][:ID_DIGITS]}"
        for one in its
    )


_COLUMNS = tuple(one.name for one in fields(RunRatio))


def read_removed(path: Path) -> Iterator[RunRatio]:
    """The lines of a table of removed records; raises BadUsage naming the first faulty line."""
    with path.open(newline="", encoding="utf-8") as file:
        for number, line in enumerate(csv.reader(file, delimiter="\t"), start=1):
            if number == 1:
                if tuple(line) != _COLUMNS:
                    raise BadUsage(f"{path}: its columns are not {', '.join(_COLUMNS)}")
                continue
            try:
                run, cpu, experiment, row, variant, kernels, ratio, low, high, launches = line
                names = run, cpu, experiment, row, variant, kernels
                yield RunRatio(*names, float(ratio), float(low), float(high), int(launches))
            except (ValueError, TypeError) as cause:
                raise BadUsage(f"{path}:{number}: not a ratio of a removed run") from cause


def write_removed(path: Path, ratios: Iterable[RunRatio]) -> None:
    """Write a table of removed records, sorted by run, row and variant."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(astuple(one) for one in sorted(ratios, key=astuple))


def lines(found: Mapping[Place, ByCpu]) -> Iterator[str]:
    """The pooled ratios in lines: one for each place, and one below it for each type of CPU."""
    for (experiment, row, variant), by_cpu in found.items():
        yield f"{experiment} {row} {shown(variant)}"
        widest = max(map(len, by_cpu)) + 2
        for cpu, its in by_cpu.items():
            runs = counted(len(its.runs), "run")
            only = ", over launches" if len(its.runs) < LEAST_RUNS else ""
            earlier = f" {EARLIER}" if its.earlier else ""
            ratio = ratio_of(its.estimate)
            assert ratio is not None
            yield from table_line(
                f"  {cpu:<{widest}}", [interval(ratio), f"  {runs}{only}{earlier}"]
            )


def how_to_read(found: Mapping[Place, ByCpu]) -> str:
    """What the lines mean, with the mark of earlier kernels only if any line has it."""
    marked = any(its.earlier for by_cpu in found.values() for its in by_cpu.values())
    more = f"; {EARLIER} newer kernels of this name were measured on another CPU" if marked else ""
    words = explained("interval", "pooled", "technique")
    return f"ratio to {BEFORE} with its 95 % interval over runs, lower is faster{more}. {words}"


def to_object(found: Mapping[Place, ByCpu]) -> list[dict[str, Any]]:
    """The pooled ratios as plain values for json.dumps(), one object for each type of CPU."""
    return [
        {
            **dict(zip(("experiment", "row", "variant"), place, strict=True)),
            "cpu": cpu,
            "ratio": its.estimate.ratio,
            "low": its.estimate.low,
            "high": its.estimate.high,
            "runs": list(its.runs),
            "earlier": its.earlier,
        }
        for place, by_cpu in found.items()
        for cpu, its in by_cpu.items()
    ]
