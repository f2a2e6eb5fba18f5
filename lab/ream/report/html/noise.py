# SPDX-License-Identifier: GPL-2.0-only
"""Plots noise.jsonl over time, using the fields that its lines have."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ream.report.html.charts import Chart, Point, chart
from ream.report.html.looks import looks
from ream.report.html.points import MOST_SAMPLES
from ream.report.html.tables import NONE, HtmlTable, number
from ream.report.numbers import fit

TOO_MUCH = 1e99
"""Larger values come from damaged lines and are ignored."""

_KINDS = (
    ("load", "Load average", {"load": "load"}),
    (
        "cpu",
        "CPU time that others took, %",
        {"steal_pct": "the hypervisor", "others_pct": "other programs"},
    ),
    (
        "clock",
        "Clock of the slowest and the fastest CPU, MHz",
        {"mhz_low": "slowest", "mhz_high": "fastest"},
    ),
    (
        "pressure",
        "Time that some task waited, %",
        {
            "cpu_pressure_pct": "for a CPU",
            "memory_pressure_pct": "for memory",
            "io_pressure_pct": "for a disk",
        },
    ),
)


def moments(lines: Iterable[str]) -> tuple[list[Mapping[str, Any]], int]:
    """The objects of noise.jsonl that have a time, thinned out, and the number of invalid lines."""
    found: list[Mapping[str, Any]] = []
    faulty = 0
    for line in lines:
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            faulty += 1
            continue
        if isinstance(fields, dict) and _number(fields.get("t_s")) is not None:
            found.append(fields)
        else:
            faulty += 1
    every = math.ceil(len(found) / MOST_SAMPLES) or 1
    return found[::every], faulty


def plots(found: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Chart, HtmlTable]]:
    """A plot for each kind of noise that was recorded, with its points as a table."""
    for ident, title, fields in _KINDS:
        points: list[Point] = [
            {"t_s": float(one["t_s"]), "value": value, "name": name}
            for field, name in fields.items()
            for one in found
            if (value := _number(one.get(field))) is not None
        ]
        names = list(dict.fromkeys(str(point["name"]) for point in points))
        if not points:
            continue
        by_time: dict[float, dict[str, str]] = {}
        for point in points:
            cells = by_time.setdefault(float(str(point["t_s"])), {})
            cells[str(point["name"])] = number(_number(point["value"]))
        said = []
        for name in names:
            values = [_number(point["value"]) or 0.0 for point in points if point["name"] == name]
            said.append(f"{name} from {fit(min(values), 9)} to {fit(max(values), 9)}")
        made = chart(
            f"noise-{ident}", "noise", title=title, alt=f"{title}: {', '.join(said)}.",
            points=points, looks=looks(names),
        )  # fmt: skip
        lines = tuple(
            (number(t_s, 1), *(cells.get(name, NONE) for name in names))
            for t_s, cells in sorted(by_time.items())
        )
        yield made, HtmlTable(caption=title, head=("second", *names), lines=lines)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < TOO_MUCH else None  # that of NaN is not, either
