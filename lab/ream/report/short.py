# SPDX-License-Identifier: GPL-2.0-only
"""The short form at the end of a long table: one line per row, and one grid per sweep."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from ream.experiment import BEFORE, CONTROL, RUNNING, SHOWN, is_copy, shown
from ream.report.contract import Result, RowResult, Summary
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
CELL, LEAST_CELL = 9, 7
"""Width of a grid's cell in columns, and on a narrow terminal."""
HOW_GRIDS_READ = "swept, times faster (below 1: slower); = equal, ? undecided:"
LETTERS = {
    "agrees": "a",
    "stronger": "s",
    "weaker": "w",
    "contradicts": "c",
    "inconclusive": "i",
    "modelled": "m",
    "mixed": "x",
    "as published": "p",
    "not as published": "n",
    "undecided": "u",
    "not-run": "-",
    "not tried": "-",
}
"""What stands for a verdict where a row of cells has no room for the words; a key follows."""


def in_short(summary: Summary) -> Iterator[str]:
    """One line per row, if the names of the variants fit next to each other; else nothing."""
    names = main_variants(summary.rows)
    if not names or max(map(len, names)) >= SHORT:
        return
    if names == [RUNNING]:
        yield from _times(summary)
        return
    compared = any(row.comparisons for row in summary.rows)
    yield from textwrap.wrap(
        "".join(
            (
                "in short: effect against " + _against(summary),
                "" if summary.receipt.guest else f", share of {limit_words(summary)}",
                ", verdict on the claim" if compared else "",
            )
        ),
        width(),
    )
    curves = sweeps(summary.rows)
    told = folded_names(summary.rows) | {row.row for curve in curves for row in curve.rows}
    rest = [row for row in summary.rows if row.row not in told]
    yield from _short_lines(rest, names, compared=compared)
    if curves:
        if rest:
            yield ""
        yield from textwrap.wrap(HOW_GRIDS_READ, width())
    key: dict[str, str] = {}
    for curve in curves:
        yield from _grid_of(curve, names, key, compared=compared)
    if key:
        said = ", ".join(f"{letter} {word}" for letter, word in sorted(key.items()))
        yield from textwrap.wrap(f"verdicts: {said}", width(), break_on_hyphens=False)


def main_variants(rows: Sequence[RowResult]) -> list[str]:
    """The variants that short tables have, also on a page: of many, given series come first."""
    found = list(dict.fromkeys(name for row in rows for name in row.variants))
    own = [name for name in found if name not in (BEFORE, CONTROL) and not is_copy(name)]
    given = [name for row in rows for name, its in row.variants.items() if its.compared_with]
    if given:
        return list(dict.fromkeys(given))[:MAX_IN_SHORT]
    if len(own) <= MAX_IN_SHORT:
        return own
    return [name for name in map(shown, SHOWN) if name in own] or own[:MAX_IN_SHORT]


def _short_lines(
    rows: Sequence[RowResult], names: Sequence[str], *, compared: bool
) -> Iterator[str]:
    """The rows that no grid has: as much of each effect as there is room for."""
    if not rows:
        return
    with_more = product((len(names) == 1, False), (True, False))
    tables = (_cells_of(rows, names, *more, compared=compared) for more in with_more)
    lines = next(tables)
    while sum(_widths(lines)) - 2 > width() and (narrower := next(tables, None)):
        lines = narrower
    wide = _widths(lines)
    roomy = [max(SHORT, wide[0] - 1), *(max(SHORT + 2, one) for one in wide[1:])]
    if sum(roomy[:-1]) + wide[-1] - 2 <= width():
        wide = roomy
    for label, *cells in lines:
        padded = [f"{cell:<{room}}" for cell, room in zip(cells, wide[1:], strict=True)]
        yield from table_line(f"{label:<{wide[0]}}", padded)


def _cells_of(
    rows: Sequence[RowResult],
    names: Sequence[str],
    with_interval: bool,
    with_share: bool,
    *,
    compared: bool,
) -> list[list[str]]:
    """The heading, and for each row its name, its effects, and its verdict if any row has one."""
    room = max(width() - SHORT - len(names) * (SHORT + 2), LEAST_ROOM)
    lines = [["", *names, *(["verdict"] if compared else [])]]
    for row in rows:
        cells = [_in_few_words(row.variants.get(name), with_interval, with_share) for name in names]
        lines.append([row.row, *cells, *([verdict_words(row, room)] if compared else [])])
    return lines


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, its)) + 2 for its in zip(*lines, strict=True)]


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


def _in_few_words(result: Result | None, with_interval: bool, with_share: bool) -> str:
    """The effect and the share of the limit, such as `2.23x faster [2.10 .. 2.35], 0.90`."""
    if result is None:
        return "not run"
    near = "" if result.of_limit is None or not with_share else f", {fit(result.of_limit, 5)}"
    ends = _ends(result) if with_interval else ""
    return (effect_words(result).removeprefix(f"{EQUAL} ") or "?") + ends + near


def _ends(result: Result) -> str:
    """The interval of the factor that effect_words() prints; nothing if counts repeat exactly."""
    ratio, low, high = result.ratio, result.low, result.high
    if ratio is None or low is None or high is None or low == high or result.effect == EQUAL:
        return ""
    ends = (low, high) if ratio >= 1 else (1 / high, 1 / low)
    return f" [{' .. '.join(fit(one, 5) for one in ends)}]"


# --- What is swept -----------------------------------------------------------------------


def _grid_of(
    sweep: Sweep, names: Sequence[str], key: dict[str, str], *, compared: bool
) -> Iterator[str]:
    """One sweep: a column for each value, a line for each variant, and a line of verdicts.

    key: takes what each letter means that stands for a verdict.
    """
    room = max(len(sweep.name) - 1, *map(len, names), len("verdict")) + 3
    free = width() - room
    longest = max(map(len, sweep.labels)) + 1
    cell = max(LEAST_CELL, longest, min(CELL, free // len(sweep.rows)))
    most = max(1, free // cell)
    for start in range(0, len(sweep.rows), most):  # of a long one, a part below the other
        rows = sweep.rows[start : start + most]
        lines = {sweep.name: list(sweep.labels[start : start + most])}
        for name in names:
            lines[f"  {name}"] = [_factor(row.variants.get(name)) for row in rows]
        if compared and any(row.comparisons for row in sweep.rows):
            lines["  verdict"] = _verdicts(rows, cell, key)
        for label, its in lines.items():
            yield "".join([f"{label:<{room}}", *(f"{one:>{cell}}" for one in its)])


def _verdicts(rows: Sequence[RowResult], cell: int, key: dict[str, str]) -> list[str]:
    """The verdict on each row, in a word if there is room for all of them, else as a letter."""
    words = [verdict_words(row, cell - 1) for row in rows]
    if max(map(len, words)) < cell:
        return words
    words = [verdict_words(row, 0) for row in rows]
    key |= {LETTERS[word]: word for word in words if word}
    return [LETTERS.get(word, "") for word in words]


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
