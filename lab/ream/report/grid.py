# SPDX-License-Identifier: GPL-2.0-only
"""Rates of migration by number of channels and folio size, next to the published table."""

from collections.abc import Iterable, Iterator, Sequence

from ream.counted import counted
from ream.experiment import BEFORE, PUBLISHED, RUNNING, Row, is_copy
from ream.published import Table, TableRow
from ream.report.contract import Grid, GridLine, RowResult

RATE = "GB/s"
"""The unit of rates: 10^9 bytes per second."""


def grids(
    rows: Iterable[Row], results: Iterable[RowResult], tables: Iterable[Table], experiment: str
) -> tuple[Grid, ...]:
    """A grid of the rows that have a cell in one, and a grid for each published table of that form.

    rows and results are in lockstep. Empty if no row has a cell or none was timed.
    """
    pairs = [
        (row, result)
        for row, result in zip(rows, results, strict=True)
        if row.cell is not None and result.unit == "ns"
    ]
    if not any(result.variants for _, result in pairs):
        return ()
    columns = tuple(dict.fromkeys(row.cell.folio for row, _ in pairs if row.cell))
    own = Grid(
        unit=RATE,
        better="higher",
        columns=columns,
        lines=tuple(_lines(pairs, columns)),
        notes=tuple(_not_run(pairs)),
    )
    return (own, *(_published(table) for table in tables if _is_alike(table, experiment)))


def label(line: GridLine) -> str:
    """The label of a line, such as "before, serial" or "ream, 2 channels"."""
    how = "serial" if line.subject in (BEFORE, RUNNING) else "offloading off"
    if line.channels:
        how = counted(line.channels, "channel")
    return f"{line.subject}, {how}"


def _lines(pairs: Sequence[tuple[Row, RowResult]], columns: Sequence[str]) -> Iterator[GridLine]:
    """Lines by variant and number of channels; `before` has a serial line only."""
    names = dict.fromkeys(name for _, result in pairs for name in result.variants)
    for name in names:
        if is_copy(name):
            continue
        for channels in sorted({row.cell.channels for row, _ in pairs if row.cell}):
            if channels and name == BEFORE:
                continue
            its = {
                row.cell.folio: result
                for row, result in pairs
                if row.cell and row.cell.channels == channels and name in result.variants
            }
            if its:
                yield GridLine(
                    subject=name,
                    channels=channels,
                    cells=tuple(
                        its[column].variants[name].gb_per_s if column in its else None
                        for column in columns
                    ),
                    note="; ".join(_shared_remarks(list(its.values()))) or None,
                )


def _shared_remarks(results: Sequence[RowResult]) -> tuple[str, ...]:
    """Remarks of the stage that apply to every one of these rows."""
    first, *others = results
    return tuple(text for text in first.remarks if all(text in one.remarks for one in others))


def _not_run(pairs: Iterable[tuple[Row, RowResult]]) -> Iterator[str]:
    """The distinct reasons for which rows have no samples, in one text."""
    reasons = dict.fromkeys(result.skipped for _, result in pairs if result.skipped)
    if reasons:
        yield f"not run: {'; '.join(reason for reason in reasons if reason)}"


def _is_alike(table: Table, experiment: str) -> bool:
    return (
        table.experiment == experiment
        and table.unit == RATE
        and all({"channels", "folio"} <= row.params.keys() for row in table.rows)
    )


def _published(table: Table) -> Grid:
    columns = tuple(dict.fromkeys(str(row.params["folio"]) for row in table.rows))
    source = ", ".join(str(part) for part in (table.author, table.date) if part)
    return Grid(
        unit=RATE,
        better=table.better,
        columns=columns,
        lines=tuple(_published_lines(table, columns)),
        id=table.id,
        source=f"{source}; {table.machine}",
    )


def _published_lines(table: Table, columns: Sequence[str]) -> Iterator[GridLine]:
    for subject in (BEFORE, PUBLISHED):
        by_place: dict[int, dict[str, TableRow]] = {}
        for row in table.rows:
            if subject in row.values:
                place = by_place.setdefault(int(row.params["channels"]), {})
                place[str(row.params["folio"])] = row
        for channels, its in sorted(by_place.items()):
            yield GridLine(
                subject=subject,
                channels=channels,
                cells=tuple(
                    float(its[column].values[subject]) if column in its else None
                    for column in columns
                ),
                sd=tuple(
                    its[column].sd.get(subject) if column in its else None for column in columns
                ),
            )
