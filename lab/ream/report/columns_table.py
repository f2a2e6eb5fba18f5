# SPDX-License-Identifier: GPL-2.0-only
"""Lines of text that show declared columns next to published tables."""

import textwrap
from collections.abc import Iterator, Sequence

from ream.experiment import is_copy
from ream.experiment.columns import Numbers, Part, Shown, ShownColumn
from ream.experiment.registry import columns_of
from ream.report.contract import Batch, PrintedLine, PrintedTable, Ratio, Result, RowResult, Summary
from ream.report.numbers import fit, interval, scale_of
from ream.width import table_line, width

WIDTH = 74
"""Width in columns, so that the lines also fit into a cover letter."""
LABEL = 16
NONE = "-"


def blocks(summary: Summary) -> Iterator[list[str]]:
    """The blocks of lines for columns and batches; no block if only times were measured."""
    for shown in tables_of(summary):
        if lines := list(_lines(shown, summary)):
            yield [*_wrapped(shown.read), *lines]
    if (declared := columns_of(summary.experiment)).parts and summary.batches:
        yield [*_wrapped(declared.read_parts), *_batches(declared.parts, summary)]


# --- What is shown -----------------------------------------------------------------------


def tables_of(summary: Summary) -> tuple[Shown, ...]:
    """The tables that the experiment declares; empty if no variant has any column."""
    if not any(its.columns for row in summary.rows for its in row.variants.values()):
        return ()
    return columns_of(summary.experiment).tables


def with_columns(summary: Summary) -> Iterator[tuple[RowResult, dict[str, Result]]]:
    """Rows that have columns, each with its variants except second copies."""
    for row in summary.rows:
        known = {name: its for name, its in row.variants.items() if its.columns is not None}
        if its := {name: one for name, one in known.items() if not is_copy(name)}:
            yield row, its


def numbers_of(result: Result) -> Numbers:
    """The numbers, by name, from which a cell of a measured line is computed."""
    found: dict[str, float] = {"median": result.median, "nr_bytes": result.nr_bytes}
    for name, value in (result.columns or {}).items():
        if isinstance(value, int | float):
            found[name] = value
        elif value is not None and not isinstance(value, Ratio):
            parts = {part: one for part, one in value.items() if not isinstance(one, Ratio)}
            found |= {f"{name}.{part}": one for part, one in parts.items()}
    return found


def numbers_there(line: PrintedLine, table: PrintedTable) -> Numbers:
    """The numbers, by name, from which a cell of a published line is computed."""
    return {**line.values, **({"nr_huge": table.nr_huge} if table.nr_huge else {})}


def ratio_in(result: Result, cell: ShownColumn) -> Ratio | None:
    """The ratio that a cell shows; None if the result lacks it."""
    found = (result.columns or {}).get(cell.ratio or "")
    return found if isinstance(found, Ratio) else None


def batch_values(parts: Sequence[Part], batch: Batch) -> tuple[float | None, ...]:
    """The values of one line of batches, in the units of its parts."""
    values = batch.model_dump()
    found = (values.get(part.name) for part in parts)
    pairs = zip(parts, found, strict=True)
    return tuple(None if value is None else value / part.scale for part, value in pairs)


def line_name(line: PrintedLine) -> str:
    """The label of a published line: the values of its parameters."""
    return ", ".join(str(value) for value in line.params.values())


# --- Lines -------------------------------------------------------------------------------


def _lines(shown: Shown, summary: Summary) -> Iterator[str]:
    cells = [cell for cell in shown.cells if cell.width]
    timed = any(cell.digits is None and cell.ratio is None for cell in cells)
    own = list(_own(shown, cells, summary, timed=timed))
    if own or not shown.sparse:
        yield from _line("", [cell.head for cell in cells], cells)
        yield from own
    for table in summary.tables:
        if (heading := shown.published(table)) is None:
            continue
        yield from _wrapped(heading)
        for line in table.lines:
            numbers = numbers_there(line, table)
            values = [_value(cell, cell.there(numbers), "ns") for cell in cells]
            yield from _line(line_name(line), values, cells)


def _own(
    shown: Shown, cells: Sequence[ShownColumn], summary: Summary, *, timed: bool
) -> Iterator[str]:
    for row, its in with_columns(summary):
        heading = f"{row.row}, {row.unit}" if timed else row.row
        for name, result in its.items():
            numbers = numbers_of(result)
            values = [
                _ratio(ratio_in(result, cell))
                if cell.ratio
                else _value(cell, cell.here(numbers), row.unit)
                for cell in cells
            ]
            if shown.sparse and all(value == NONE for value in values):
                continue
            yield from _wrapped(heading) if heading else ()
            heading = ""
            yield from _line(name, values, cells)


def _batches(parts: Sequence[Part], summary: Summary) -> Iterator[str]:
    cells = [ShownColumn(part.head, part.width, digits=1) for part in parts]
    yield from _line("", [cell.head for cell in cells], cells)
    said = None
    for one in summary.batches:
        if one.subject != said:
            said = one.subject
            yield from _wrapped(one.subject)
        pairs = zip(cells, batch_values(parts, one), strict=True)
        yield from _line(str(one.batch_pages), [_value(*pair, "ns") for pair in pairs], cells)


# --- Cells -------------------------------------------------------------------------------


def _line(label: str, cells: Sequence[str], columns: Sequence[ShownColumn]) -> Iterator[str]:
    """One line of cells. A label that is too long for its column gets lines of its own."""
    if len(label) > LABEL - 2:
        yield from textwrap.wrap(
            label, min(WIDTH, width()), initial_indent="  ", subsequent_indent="  "
        )
        label = ""
    pairs = zip(cells, columns, strict=True)
    padded = [f"{cell:>{column.width}}" for cell, column in pairs]
    for line in table_line(f"  {label}".ljust(LABEL), padded):
        yield from textwrap.wrap(line, width(), drop_whitespace=False)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, min(WIDTH, width()), break_on_hyphens=False)


def _value(cell: ShownColumn, value: float | None, unit: str) -> str:
    """A cell's text. Times have a unit, counts only its prefix: the heading has `instr`."""
    if value is None:
        return NONE
    if cell.digits is not None:
        return fit(value, cell.width - 1, cell.digits)
    scale, name = scale_of([value], unit)
    short = name.removesuffix("instr").strip()
    text = fit(value / scale, cell.width - 1 - len(short) - bool(short))
    return f"{text} {short}".rstrip()


def _ratio(ratio: Ratio | None) -> str:
    return NONE if ratio is None else interval(ratio)
