# SPDX-License-Identifier: GPL-2.0-only
"""Draws a curve for each sweep, shown above the tables."""

from collections.abc import Iterable, Iterator

from ream.experiment import BEFORE, CONTROL, is_copy
from ream.report.contract import RowResult
from ream.report.html.charts import SHAPES, Chart, Point, chart, sweep_kind
from ream.report.numbers import fit
from ream.report.sweep import Sweep, each_of, ends_of, sweeps


def curves(rows: Iterable[RowResult]) -> Iterator[Chart]:
    """One plot for each sweep."""
    for number, one in enumerate(sweeps(rows), start=1):
        names = [
            name
            for name in dict.fromkeys(name for row in one.rows for name in row.variants)
            if not is_copy(name) and name != CONTROL
        ]
        points = [point for name in names[: len(SHAPES)] for point in _of_variant(one, name)]
        if not points:
            continue
        more = {"limit": list(_limit(one)), "there": list(_published(one))}
        yield chart(
            f"sweep-{number}",
            sweep_kind(**more),
            title=f"{one.name}: {_unit(one)} a page, over {one.field}",
            alt=f"{one.name}: {'; '.join(_words(one, name) for name in names[: len(SHAPES)])}.",
            points=points,
            **{name: its for name, its in more.items() if its},
        )


def _unit(sweep: Sweep) -> str:
    return "ns" if sweep.rows[0].unit == "ns" else "instructions"


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
    for label, row in zip(sweep.labels, sweep.rows, strict=True):
        its = row.variants.get(BEFORE)
        value = None if its is None else each_of(its)
        for table in row.comparisons[:1]:
            if value is not None and table.ratio is not None:
                yield {"x": label, "y": value * table.ratio}


def _words(sweep: Sweep, name: str) -> str:
    said = (
        f"{label} {fit(value, 6)}"
        for label, row in zip(sweep.labels, sweep.rows, strict=True)
        if (its := row.variants.get(name)) is not None and (value := each_of(its)) is not None
    )
    return f"{name} {', '.join(said)}"
