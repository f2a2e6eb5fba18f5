# SPDX-License-Identifier: GPL-2.0-only
"""Compares hosted times with those of the running kernel, which performed the same in turn."""

import statistics as plain_statistics
from collections.abc import Mapping, Sequence

from ream.experiment import PAGE_BYTES, RUNNING, is_copy
from ream.measure import statistics
from ream.measure.sample import Sample
from ream.report.contract import LiveSlope, LiveTime
from ream.report.decide import MeasuredRow
from ream.report.numbers import ratio_of, rounded


def live_times(measured: Sequence[MeasuredRow], names: Sequence[str]) -> dict[str, LiveTime]:
    """By row, what the running kernel took; nothing of rows that it did not perform."""
    own = [name for name in names if not is_copy(name)]
    samples = {one.row.name: one.by_wall for one in measured}
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
