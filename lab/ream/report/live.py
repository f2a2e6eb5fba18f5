# SPDX-License-Identifier: GPL-2.0-only
"""Compares hosted times with those of the running kernel, which performed the same in turn."""

import statistics as plain_statistics
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from ream.experiment import BEFORE, PAGE_BYTES, RUNNING, is_copy
from ream.measure import statistics
from ream.measure.sample import Sample
from ream.report.contract import LiveSlope, LiveTime, RowResult, Summary
from ream.report.decide import MeasuredRow
from ream.report.numbers import fit, interval, ratio_of, rounded, scale_of
from ream.width import table_line, width

NAME = 26
NUMBER = 9
RATIO = 22

HOW_TO_READ = (
    "beside the running kernel: ns of each further page, and how many times as long the running"
    " kernel takes as the hosted one, with the 95 % interval over launches. The same program ran on"
    " both in turn; what a call costs once is not in it."
)


def live_times(measured: Sequence[MeasuredRow], names: Sequence[str]) -> dict[str, LiveTime]:
    """By row, what the running kernel took; nothing of rows that it did not perform."""
    own = [name for name in names if not is_copy(name)]
    samples = {one.row.name: _wall_times(one) for one in measured}
    found = {}
    for one in measured:
        its = samples[one.row.name]
        live = [sample for sample in its if sample.role == "live"]
        if not live:
            continue
        smaller = _smaller(one, measured)
        found[one.row.name] = LiveTime(
            ns=rounded(plain_statistics.median(sample.time_ns for sample in live)),
            over={name: ratio_of(statistics.live_ratio(its, name)) for name in own},
            slope=_slope(one, smaller, samples[smaller], its, own) if smaller else None,
        )
    return found


def _wall_times(measured: MeasuredRow) -> Sequence[Sample]:
    """The running kernel has no other times than those of the wall clock."""
    return measured.wall_samples or measured.samples


def _smaller(one: MeasuredRow, measured: Sequence[MeasuredRow]) -> str | None:
    """The smallest of the rows that differ from a row in being smaller alone."""
    alike = [
        other.row
        for other in measured
        if other.row.size_of is not None
        and other.row.size_of == one.row.size_of
        and other.row.written_bytes < one.row.written_bytes
        and any(sample.role == "live" for sample in other.samples)
    ]
    return min(alike, key=lambda row: row.written_bytes).name if alike else None


def _slope(
    one: MeasuredRow,
    smaller: str,
    small: Sequence[Sample],
    large: Sequence[Sample],
    names: Sequence[str],
) -> LiveSlope:
    live = statistics.slope(small, large, RUNNING, role="live")
    hosted = {name: statistics.slope(small, large, name) for name in names}
    return LiveSlope(
        kind=one.row.size_of or "",
        smaller=smaller,
        ns_per_page=_per_page(live),
        hosted={name: _per_page(its) for name, its in hosted.items()},
        over={name: ratio_of(statistics.slope_ratio(live, its)) for name, its in hosted.items()},
    )


def _per_page(slopes: Mapping[int, float]) -> float:
    return rounded(plain_statistics.median(slopes.values()) * PAGE_BYTES)


# --- Text ----------------------------------------------------------------------------------


def of_row(live: LiveTime) -> str:
    """What the running kernel took for a row's program, in words."""
    scale, unit = scale_of([live.ns], "ns")
    over = live.over.get(BEFORE)
    times = "" if over is None else f", {interval(over)} times {BEFORE}"
    return f"{fit(live.ns / scale, 6)} {unit} on the running kernel{times}"


def block(summary: Summary) -> Iterator[str]:
    """A table of all rows with a slope: a line for each hosted variant."""
    rows = [row for row in summary.rows if row.live is not None and row.live.slope is not None]
    if not rows:
        return
    yield from textwrap.wrap(HOW_TO_READ, width())
    yield from _line("", "running", "hosted", "running / hosted", "variant")
    for row in rows:
        yield from _lines(row)


def _lines(row: RowResult) -> Iterator[str]:
    slope = row.live.slope if row.live else None
    if slope is None:
        return
    name, live = row.row, fit(slope.ns_per_page, 7)
    for variant, ns in slope.hosted.items():
        over = slope.over[variant]
        said = "noise" if over is None else interval(over)
        yield from _line(name, live, fit(ns, 7), said, variant)
        name = live = ""


def _line(*cells: str) -> Iterator[str]:
    name, live, hosted, ratio, variant = cells
    numbers = (f"{live:>{NUMBER}}", f"{hosted:>{NUMBER}}", f"  {ratio:>{RATIO}}", f"  {variant}")
    yield from table_line(f"{name:<{NAME}}", numbers)
