# SPDX-License-Identifier: GPL-2.0-only
"""The short form at the end of a long table: one line per row, and one grid per sweep."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from ream.experiment import BEFORE, CONTROL, RUNNING, is_copy
from ream.report.contract import Result, Summary
from ream.report.limit import limit_words
from ream.report.not_run import folded_names
from ream.report.numbers import fit, scale_of
from ream.report.sweep import Sweep, sweeps
from ream.report.words import EQUAL, effect_words, verdict_words
from ream.width import WIDEST, table_line, width

SHORT = 20
MAX_IN_SHORT = 3
LEAST_ROOM = 16
"""Width of the longest verdict in columns."""
CELL = 9
"""Width of a grid's cell in columns."""
HOW_GRIDS_READ = (
    "swept, times faster than what it is compared with (below 1: slower); = equal, ? undecided:"
)


def in_short(summary: Summary) -> Iterator[str]:
    """One line per row, if the names of the variants fit next to each other; else nothing."""
    names = [
        name
        for name in dict.fromkeys(name for row in summary.rows for name in row.variants)
        if name not in (BEFORE, CONTROL) and not is_copy(name)
    ]
    if not names or len(names) > MAX_IN_SHORT or max(map(len, names)) >= SHORT:
        return
    if names == [RUNNING]:
        yield from _times(summary)
        return
    compared = any(row.comparisons for row in summary.rows)
    room = width() - SHORT - len(names) * (SHORT + 2)
    if room < LEAST_ROOM:  # it goes on in the next line
        room = width() - SHORT - (SHORT + 2)
    yield from textwrap.wrap(
        "".join(
            (
                "in short: effect against " + _against(summary),
                "" if summary.receipt.guest else f", share of {limit_words(summary)}",
                ", verdict on the published table" if compared else "",
            )
        ),
        width(),
    )
    curves = sweeps(summary.rows)
    told = folded_names(summary.rows) | {row.row for curve in curves for row in curve.rows}
    rest = [row for row in summary.rows if row.row not in told]
    if rest:
        yield from _short_line("", [*names, "verdict"] if compared else names)
    for row in rest:
        cells = [_in_few_words(row.variants.get(name)) for name in names]
        yield from _short_line(row.row, [*cells, verdict_words(row, room)])
    if curves:
        if rest:
            yield ""
        yield from textwrap.wrap(HOW_GRIDS_READ, width())
    for curve in curves:
        yield from _grid_of(curve, names, compared=compared)


def _against(summary: Summary) -> str:
    """The variants that ratios refer to, in words."""
    trees = sorted({to for row in summary.rows for to in row.floors})
    return ", of given series against ".join((BEFORE, *trees))


def _times(summary: Summary) -> Iterator[str]:
    """For a run without a comparison, each row's median time and its first remark."""
    yield "in short: median time"
    for row in summary.rows:
        result = row.variants.get(RUNNING)
        if result is None:
            yield from _short_line(row.row, [f"not run: {row.skipped}"])
            continue
        scale, unit = scale_of([result.median], row.unit)
        yield from _short_line(
            row.row, [f"{fit(result.median / scale, 9)} {unit}", *row.remarks[:1]]
        )


def _short_line(row: str, cells: Iterable[str]) -> Iterator[str]:
    if len(row) >= SHORT:
        yield from textwrap.wrap(row, width())
        row = ""
    for line in table_line(f"{row:<{SHORT}}", [f"{cell:<{SHORT + 2}}" for cell in cells]):
        # A remark may be long; a record's table keeps it in one line, as ever.
        most = width() if width() < WIDEST else max(WIDEST, len(line))
        yield from textwrap.wrap(line, most, subsequent_indent=" " * SHORT)


def _in_few_words(result: Result | None) -> str:
    """The effect and the share of the limit, such as `2.23x faster, 0.90`."""
    if result is None:
        return "not run"
    near = "" if result.of_limit is None else f", {fit(result.of_limit, 5)}"
    return (effect_words(result).removeprefix(f"{EQUAL} ") or "?") + near


# --- What is swept -----------------------------------------------------------------------


def _grid_of(sweep: Sweep, names: Sequence[str], *, compared: bool) -> Iterator[str]:
    """One sweep: a column for each value, a line for each variant, and a line of verdicts."""
    room = max(len(sweep.name) - 1, *map(len, names), len("verdict")) + 3
    yield from _cells(sweep.name, sweep.labels, room)
    for name in names:
        cells = [_factor(row.variants.get(name)) for row in sweep.rows]
        yield from _cells(f"  {name}", cells, room)
    if compared and any(row.comparisons for row in sweep.rows):
        words = (verdict_words(row, LEAST_ROOM) for row in sweep.rows)
        yield from _cells("  verdict", [_cut(word) for word in words], room)


def _cells(label: str, cells: Iterable[str], room: int) -> Iterator[str]:
    yield from table_line(f"{label:<{room}}", [f"{cell:>{CELL}}" for cell in cells])


_CUT = {"as published": "as pub.", "not as published": "not pub."}


def _cut(word: str) -> str:
    word = _CUT.get(word, word)
    return word if len(word) < CELL else f"{word[: CELL - 2]}."


def _factor(result: Result | None) -> str:
    """The speedup, such as `1.27x`; `=` for an equal result, `?` for an undecided one."""
    if result is None or result.ratio is None:
        return "-"
    if not result.verified:
        return "WRONG"
    if result.effect in ("equal", "no difference"):
        return "="
    if result.effect == "undecided":
        return "?"
    return f"{fit(1 / result.ratio, 5)}x"
