# SPDX-License-Identifier: GPL-2.0-only
"""The tables of a page: results of a row, published values, grids and columns.

They are pure functions of the object of `--json`. Every cell is text, which the template escapes.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property

from ream.counted import counted
from ream.experiment import BEFORE, RUNNING
from ream.experiment.columns import Columns, Shown, ShownColumn
from ream.experiment.registry import columns_of
from ream.report import grid
from ream.report.columns_table import (
    batch_values,
    line_name,
    numbers_of,
    ratio_in,
    tables_of,
    with_columns,
)
from ream.report.contract import Comparison, Grid, Result, RowResult, Summary
from ream.report.explain import entry
from ream.report.limit import LIMIT_WORDS
from ream.report.numbers import fit, interval, scale_of
from ream.report.table import (
    best_fills,
    grid_notes,
    grid_title,
    printed_values,
)
from ream.report.words import effect_words, shown_verdict
from ream.values import Texts, Tuple, Value

WIDE = 12
"""The most characters of a number: a browser has more room than a terminal."""
NONE = "-"
LONGEST_NUMBER = 30
"""The most characters of a number with its interval."""


class HtmlTable(Value):
    """A table with a heading per column. The first cell of a line is its heading."""

    caption: str
    head: Texts
    lines: Tuple[tuple[str, ...]]
    notes: Texts = ()
    colours: Tuple[tuple[str, ...]] = ()
    """For each line and cell, a class of the style sheet that colours it; empty for none."""

    def classes(self, line: int, column: int) -> Mapping[str, str]:
        """The class attribute of a cell, if it has one."""
        words = "words" if self.words[column] else ""
        colour = self.colours[line][column] if self.colours else ""
        return {"class": f"{words} {colour}".strip()} if words or colour else {}

    @cached_property
    def words(self) -> tuple[bool, ...]:
        """For each column, whether it has sentences, which are wrapped, rather than numbers."""
        return tuple(
            any(len(line[column]) > LONGEST_NUMBER for line in self.lines)
            for column in range(len(self.head))
        )


def number(value: float | None, digits: int = 2) -> str:
    """A number in at most WIDE columns; a dash for None."""
    return NONE if value is None else fit(value, WIDE, digits)


def ratio_words(result: Result) -> str:
    """A ratio with its interval; a dash without one."""
    return NONE if result.ratio is None else interval(result)


def _between(low: float | None, high: float | None) -> str:
    return NONE if low is None or high is None else f"{number(low, 3)} .. {number(high, 3)}"


# --- A row -------------------------------------------------------------------------------


def unit_of(row: RowResult) -> tuple[float, str]:
    """The divisor of the row's values, and the name of the resulting unit."""
    if not row.variants:
        return 1.0, row.unit
    return scale_of([result.median for result in row.variants.values()], row.unit)


def of_row(row: RowResult, word: str) -> HtmlTable:
    """All results of a row: a line for each variant, then one for each limit.

    word: for the limit, see report.limit.limit_word().
    """
    scale, unit = unit_of(row)
    fills = best_fills(row.limits or ((row.limit,) if row.limit else ()))
    by_entry = any(result.per_entry is not None for result in row.variants.values())
    known = [each for result in row.variants.values() if (each := _each_of(result)) is not None]
    each_scale, each_unit = scale_of(known, row.unit) if known else (1.0, row.unit)
    lines = [_variant(name, result, scale, each_scale) for name, result in row.variants.items()]
    lines += [
        (
            f"{word} {fill.how} x{fill.threads}",
            number(fill.value / scale),
            *[NONE] * 5,
            "1",
            NONE if by_entry or fill.ns_per_page is None else number(fill.ns_per_page / each_scale),
            number(fill.gb_per_s),
            str(fill.threads),
            *[NONE] * 4,
        )
        for fill in fills
    ]
    of_each = f"{each_unit} for each {entry(row) if by_entry else 'page'}"
    return _without_empty(
        HtmlTable(
            caption=f"{row.row}: what was measured",
            head=(
                "variant",
                f"median, {unit}",
                "ratio",
                "interval",
                "p",
                "launches from .. to",
                "effect",
                f"share of {LIMIT_WORDS[word]}",
                of_each,
                "GB/s",
                "CPUs",
                f"CPU time, {unit}",
                "CPU s/GiB",
                "ratio of CPU time",
                "verified",
            ),
            lines=tuple(lines),
        )
    )


def _each_of(result: Result) -> float | None:
    """The value per entry or per page; None if the row has neither."""
    return result.per_entry or result.per_page or result.ns_per_page


def _variant(name: str, result: Result, scale: float, each_scale: float) -> tuple[str, ...]:
    each = _each_of(result)
    share = number(result.of_limit, 3)
    if result.of_limit_low is not None and result.of_limit_high is not None:
        share += f" [{_between(result.of_limit_low, result.of_limit_high)}]"
    compares = name not in (BEFORE, RUNNING)
    return (
        name,
        number(result.median / scale),
        number(result.ratio, 3) if name != RUNNING else NONE,
        _between(result.low, result.high) if compares else NONE,
        number(result.p_value, 4) if compares else NONE,
        _between(result.spread_low, result.spread_high) if compares else NONE,
        (effect_words(result) or NONE) if compares else NONE,
        share,
        NONE if each is None else number(each / each_scale),
        number(result.gb_per_s),
        NONE if result.threads is None else str(result.threads),
        NONE if result.cpu_ns is None else number(result.cpu_ns / scale),
        number(result.cpu_s_per_gib, 3),
        NONE if result.cpu_over_before is None else interval(result.cpu_over_before),
        "yes" if result.verified else "NO",
    )


def _without_empty(table: HtmlTable) -> HtmlTable:
    """The table without columns in which every cell is empty."""
    used = [
        column
        for column in range(len(table.head))
        if any(line[column] != NONE for line in table.lines)
    ]
    return table.model_copy(
        update={
            "head": tuple(table.head[column] for column in used),
            "lines": tuple(tuple(line[column] for column in used) for line in table.lines),
        }
    )


def published(row: RowResult) -> HtmlTable | None:
    """A line for each published counterpart with the reason of its verdict; None without any."""
    if not row.comparisons:
        return None
    differing: dict[str, list[str]] = {}
    for one in row.comparisons:
        if one.differs:
            differing.setdefault("; ".join(one.differs), []).append(one.id)
    table = HtmlTable(
        caption=f"{row.row}: what was published",
        head=("table", "source", "printed", "ratio", "verdict", "why"),
        lines=tuple(_counterpart(one, row) for one in row.comparisons),
        notes=tuple(f"differs in {', '.join(ids)}: {text}" for text, ids in differing.items()),
    )
    return _without_empty(table)


def _counterpart(one: Comparison, row: RowResult) -> tuple[str, ...]:
    cpus = None if one.threads is None else counted(one.threads, "CPU")
    cpus = f"{cpus} (inferred)" if "threads" in one.inferred else cpus
    return (
        one.id,
        ", ".join(part for part in (one.author, one.date, one.machine, cpus) if part) or NONE,
        "; ".join(part for part in (printed_values(one), one.claims) if part) or NONE,
        published_ratio(one),
        shown_verdict(one, row).upper(),
        "; ".join(
            part
            for part in (
                one.reason or "no reason recorded",
                f"engine modelled as {one.model}"
                if one.model and one.verdict != "modelled"
                else "",
            )
            if part
        ),
    )


def published_ratio(one: Comparison) -> str:
    """The published ratio, marked if it is approximate; a dash without one."""
    if one.ratio is None:
        return NONE
    return f"{'about ' if one.approximate else ''}{fit(one.ratio, 5, 3)}"


# --- Of all rows -------------------------------------------------------------------------


def others(summary: Summary) -> Iterator[HtmlTable]:
    """Grids of rates, columns that the experiment declares, and published tables of both."""
    for own in summary.grids:
        yield _grid(own)
    for shown in tables_of(summary):
        table = _of_columns(shown, summary)
        empty = all(set(line[2:]) == {NONE} for line in table.lines)
        if shown.on_page and not (shown.sparse and empty):
            yield table
    for printed in summary.tables:
        columns = tuple(dict.fromkeys(name for line in printed.lines for name in line.values))
        yield HtmlTable(
            caption=f"{printed.id}, as printed ({printed.source}; {printed.machine})",
            head=("row", *columns),
            lines=tuple(
                (
                    line_name(line),
                    *(_printed(line.values.get(name), line.sd.get(name)) for name in columns),
                )
                for line in printed.lines
            ),
            notes=(printed.method,),
        )
    if (declared := columns_of(summary.experiment)).parts and summary.batches:
        yield _batches(declared, summary)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _printed(value: float | None, sd: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:,}" if sd is None else f"{value:,} ({sd:,})"


def _grid(own: Grid) -> HtmlTable:
    def cell(value: float | None, sd: float | None) -> str:
        return number(value) if sd is None else f"{number(value)} ({number(sd)})"

    return HtmlTable(
        caption=_sentence(grid_title(own)),
        head=("subject", *own.columns),
        lines=tuple(
            (
                grid.label(line),
                *(
                    cell(value, line.sd[place] if place < len(line.sd) else None)
                    for place, value in enumerate(line.cells)
                ),
            )
            for line in own.lines
        ),
        notes=grid_notes(own),
    )


def _with_unit(value: float | None, unit: str) -> str:
    if value is None:
        return NONE
    scale, name = scale_of([value], unit)
    return f"{number(value / scale)} {name}"


def _of_columns(shown: Shown, summary: Summary) -> HtmlTable:
    lines = tuple(
        (row.row, name, *(_shown_cell(cell, result, row.unit) for cell in shown.cells))
        for row, its in with_columns(summary)
        for name, result in its.items()
    )
    head = ("row", "variant", *(cell.head for cell in shown.cells))
    table = HtmlTable(caption=_sentence(shown.read), head=head, lines=lines)
    return table if shown.sparse else _without_empty(table)


def _shown_cell(cell: ShownColumn, result: Result, unit: str) -> str:
    if cell.ratio:
        return NONE if (ratio := ratio_in(result, cell)) is None else interval(ratio)
    value = cell.here(numbers_of(result))
    if cell.digits is None:
        return _with_unit(value, unit)
    # A number that a text has no room for is a whole one: here it is as long as it is.
    return f"{value:,.0f}" if value is not None and not cell.width else number(value, cell.digits)


def _batches(declared: Columns, summary: Summary) -> HtmlTable:
    parts = declared.parts
    return HtmlTable(
        caption=_sentence(declared.read_parts),
        head=("variant", "pages of a call", *(part.head for part in parts)),
        lines=tuple(
            (one.subject, str(one.batch_pages), *map(number, batch_values(parts, one)))
            for one in summary.batches
        ),
    )
