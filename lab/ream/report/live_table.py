# SPDX-License-Identifier: GPL-2.0-only
"""Lines of text that show hosted times beside those of the running kernel."""

import textwrap
from collections.abc import Iterator

from ream.experiment import BEFORE
from ream.report.contract import LiveTime, RowResult, Summary
from ream.report.numbers import fit, interval, scale_of
from ream.width import table_line, width

NAME = 26
NUMBER = 9
RATIO = 22

HOW_TO_READ = (
    "beside the running kernel: ns of each further page, and how many times as long the running"
    " kernel takes as the hosted one, with the 95 % interval over launches. The same program ran on"
    " both in turn; what a call costs once is not in it."
)


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
