# SPDX-License-Identifier: GPL-2.0-only
"""Draws a curve for each sweep, shown above the tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ream.experiment import BEFORE, CONTROL, is_copy
from ream.report.contract import RowResult, Summary
from ream.report.html.charts import MOST_IN_PLOT, Chart, Point, chart, log_ticks, sweep_kind
from ream.report.html.looks import looks_of
from ream.report.limit import limit_words
from ream.report.numbers import fit
from ream.report.sweep import Sweep, each_of, ends_of, sweeps, words_of


def unnamed(pictures: Iterable[Chart], summary: Summary) -> list[str]:
    """What the data sets of these curves are that their legends do not have."""
    words = {
        "limit": f"dashes: {limit_words(summary)}",
        "there": "hollow diamonds: before x the published ratio",
    }
    data = {name for one in pictures for name in one.data}
    return [said for name, said in words.items() if name in data]


def kernel_before(receipt: Mapping[str, Any]) -> str | None:
    """The version of `before`, as 6.12, if the run compares kernels of other sources with it."""
    kernel = receipt.get("kernel") or {}
    trees = (kernel.get("trees") or {}).values()
    if all(one.get("tree_key") == kernel.get("tree_key") for one in trees):
        return None
    return ".".join(str(kernel.get("version")).split(".")[:2])


def curves(rows: Sequence[RowResult], kernel: str | None = None) -> Iterator[Chart]:
    """One plot for each sweep.

    kernel: the version of `before`, if the run compares kernels. Its plots are of ratios to it.
    """
    look = looks_of(rows)
    for number, one in enumerate(sweeps(rows), start=1):
        names = [
            name
            for name in dict.fromkeys(name for row in one.rows for name in row.variants)
            if not is_copy(name) and name != CONTROL
        ][:MOST_IN_PLOT]
        made = _of_times(one, names) if kernel is None else _of_ratios(one, names, kernel)
        unit, kind, data = made
        if not data["points"]:
            continue
        title, over = one.title, words_of(one.field)
        yield chart(
            f"sweep-{number}",
            kind,
            title=title,
            alt=f"{title}: {unit}, over {over}: {'; '.join(_words(data['points']))}.",
            ticks=log_ticks(*_ends(data.values())),
            axes=(over, unit),
            family=one.name,
            looks=look if kernel is None else {**look, kernel: look[BEFORE]},
            **data,
        )


def _ends(data: Iterable[Iterable[Point]]) -> tuple[float, float]:
    """The least and the greatest value of a plot, at least a tenth apart."""
    found = [
        float(value)
        for points in data
        for point in points
        for name in ("y", "low", "high")
        if isinstance(value := point.get(name), float | int)
    ]
    low, high = min(found), max(found)
    return (low, high) if high > LEAST_SPAN * low else (low / LEAST_SPAN, high * LEAST_SPAN)


LEAST_SPAN = 1.1
"""The least ratio of an axis's ends."""

_Made = tuple[str, str, dict[str, list[Point]]]
"""The title of a plot's vertical axis, its kind, and its data sets."""


def _of_times(sweep: Sweep, names: Sequence[str]) -> _Made:
    """Times or counts of each variant, the limit, and what published ratios predict."""
    points = [point for name in names for point in _of_variant(sweep, name)]
    limit, there = list(_limit(sweep)), list(_published(sweep))
    data = {"points": points, "limit": limit, "there": there}
    data = {name: its for name, its in data.items() if its or name == "points"}
    unit = "ns" if sweep.rows[0].unit == "ns" else "instructions"
    return f"{unit} a page", sweep_kind(limit, there), data


def _of_ratios(sweep: Sweep, names: Sequence[str], kernel: str) -> _Made:
    """The ratio of each kernel to the first one, which is 1."""
    points: list[Point] = [
        {
            "name": kernel if name == BEFORE else name,
            "x": label,
            "y": result.ratio,
            "low": result.low,
            "high": result.high,
        }
        for name in names
        for label, row in zip(sweep.labels, sweep.rows, strict=True)
        if (result := row.variants.get(name)) is not None and result.ratio is not None
    ]
    what = "time" if sweep.rows[0].unit == "ns" else "instructions"
    return f"{what}, {kernel} = 1", sweep_kind(limit=False, there=False), {"points": points}


def _of_variant(sweep: Sweep, name: str) -> Iterator[Point]:
    for label, row in zip(sweep.labels, sweep.rows, strict=True):
        result = row.variants.get(name)
        if result is None or (value := each_of(result)) is None:
            continue
        ends = ends_of(row, result) if name != BEFORE else None
        low, high = ends or (None, None)
        yield {"name": name, "x": label, "y": value, "low": low, "high": high}


def _limit(sweep: Sweep) -> Iterator[Point]:
    """The value at the limit, from that of `before` and its share of the limit."""
    for label, row in zip(sweep.labels, sweep.rows, strict=True):
        its = row.variants.get(BEFORE)
        value = None if its is None else each_of(its)
        if its is not None and value is not None and its.of_limit is not None:
            yield {"x": label, "y": value * its.of_limit}


def _published(sweep: Sweep) -> Iterator[Point]:
    """`before` times the published ratio, for tables that the row was compared with.

    A table that was not run is left out: `before` may have its technique already.
    """
    for label, row in zip(sweep.labels, sweep.rows, strict=True):
        its = row.variants.get(BEFORE)
        value = None if its is None else each_of(its)
        for table in row.comparisons[:1]:
            if value is not None and table.ratio is not None and table.verdict != "not-run":
                yield {"x": label, "y": value * table.ratio}


def _words(points: Iterable[Point]) -> Iterator[str]:
    """The values of each name in a sentence's part."""
    by_name: dict[str, list[str]] = {}
    for point in points:
        value = point["y"]
        assert isinstance(value, float | int)
        by_name.setdefault(str(point["name"]), []).append(f"{point['x']} {fit(value, 6)}")
    return (f"{name} {', '.join(said)}" for name, said in by_name.items())
