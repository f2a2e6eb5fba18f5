# SPDX-License-Identifier: GPL-2.0-only
"""What compaction did, beside the published table: lines for the table and for the letter."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ream.experiment import is_copy
from ream.report.contract import (
    Batch,
    Compaction,
    PrintedLine,
    PrintedTable,
    Ratio,
    Result,
    RowResult,
    Summary,
)
from ream.report.numbers import fit, interval, scale_of
from ream.width import table_line, width

WIDTH = 74
"""Columns, so that a letter can hold the lines, too."""
LABEL = 16
MS = 1e6
GIB_BYTES = 1 << 30
NONE = "-"


@dataclass(frozen=True)
class Column:
    head: str
    width: int


DID = (
    Column("took", 10),
    Column("migrated", 10),
    Column("DMA copies", 11),
    Column("hog M/s", 9),
    Column("user%", 6),
    Column("sys%", 6),
    Column("idle%", 6),
)
EACH = (
    Column("moved", 8),
    Column("scanned", 9),
    Column("for free", 9),
    Column("took", 10),
    Column("not copying", 12),
    Column("longest", 10),
)
MACHINE = (
    Column("user", 10),
    Column("system", 10),
    Column("idle", 10),
    Column("steal", 10),
    Column("used a GiB", 12),
)
RATIOS = (Column("not copying", 29), Column("hog iterations a second", 29))
BATCH = (
    Column("a page", 9),
    Column("copy", 9),
    Column("flush", 9),
    Column("rest", 9),
    Column("by DMA", 9),
    Column("a call, us", 12),
)

READ_DID = (
    "what compaction did: pages migrated, those of them copied by DMA, millions of iterations of "
    "the hog a second, shares of the CPU that allocates"
)
READ_EACH = (
    "of a huge page: pages moved (256 where half of memory is free), pages looked at to be moved "
    "and to be filled, what it took, that without copying pages, and the longest of any one"
)
READ_MACHINE = (
    "CPU time of all CPUs meanwhile, the engine's and the hog's among it, and what was used of it "
    "(user and system) for each GiB of huge pages"
)
READ_RATIOS = "ratio to before: lower is better of what is not copying, higher of the hog"
READ_BATCHES = (
    "where the time of a page goes, in ns, by pages of a call: whole with flushes where these are "
    "measured; copying; flushing; the rest; whole by DMA without flushes. Of a call: how long its "
    "first page cannot be used at most"
)


def blocks(summary: Summary) -> Iterator[list[str]]:
    """Every block of lines that there is something for; none where nothing was compacted."""
    rows = [row for row in summary.rows if any(one.compaction for one in row.variants.values())]
    if rows:
        yield [*_wrapped(READ_DID), *_did(rows, summary.tables)]
        yield [*_wrapped(READ_EACH), *_each(rows, summary.tables)]
        if machine := list(_machine(rows)):
            yield [*_wrapped(READ_MACHINE), *machine]
        if ratios := list(_ratios(rows)):
            yield [*_wrapped(READ_RATIOS), *ratios]
    if summary.batches:
        yield [*_wrapped(READ_BATCHES), *_batches(summary.batches)]


# --- Ours, and the published -------------------------------------------------------------


def _did(rows: Iterable[RowResult], tables: Iterable[PrintedTable]) -> Iterator[str]:
    yield from _line("", [one.head for one in DID], DID)
    for row, name, result, its in _compacted(rows):
        yield from _heading(row, name)
        cells = [
            _time(result.median, row.unit, DID[0]),
            _number(its.migrated),
            _number(its.dma_copies),
            _hog(its.hog_per_s),
            *(_percent(one) for one in (its.user_pct, its.sys_pct, its.idle_pct)),
        ]
        yield from _line(name, cells, DID)
    for table in tables:
        yield from _wrapped(f"in {table.id} ({table.source}; {table.machine})")
        for line in table.lines:
            values = line.values
            wall = values.get("wall_ms")
            hog = values.get("hog_iterations")
            cells = [
                NONE if wall is None else _time(wall * MS, "ns", DID[0]),
                _number(values.get("migrated")),
                _number(values.get("dma_copies")),
                _hog(hog / wall * 1e3 if hog and wall else None),
                *(_percent(values.get(f"{name}_pct")) for name in ("user", "sys", "idle")),
            ]
            yield from _line(_mode(line), cells, DID)


def _each(rows: Iterable[RowResult], tables: Iterable[PrintedTable]) -> Iterator[str]:
    yield from _line("", [one.head for one in EACH], EACH)
    for row, name, _, its in _compacted(rows):
        yield from _heading(row, name)
        cells = [
            _value(its.migrated_per_huge, EACH[0]),
            *(_of_huge(one, its) for one in (its.migrate_scanned, its.free_scanned)),
            _time(its.per_huge, row.unit, EACH[3]),
            _time(its.per_huge_without_copies, row.unit, EACH[4]),
            _time(its.longest, row.unit, EACH[5]),
        ]
        yield from _line(name, cells, EACH)
    for table in tables:
        if not table.nr_huge:
            continue
        yield from _wrapped(f"in {table.id}, from {table.nr_huge:,} huge pages")
        for line in table.lines:
            wall, migrated = line.values.get("wall_ms"), line.values.get("migrated")
            cells = [
                _value(None if migrated is None else migrated / table.nr_huge, EACH[0]),
                NONE,
                NONE,
                NONE if wall is None else _time(wall * MS / table.nr_huge, "ns", EACH[3]),
                NONE,
                NONE,
            ]
            yield from _line(_mode(line), cells, EACH)


def _machine(rows: Iterable[RowResult]) -> Iterator[str]:
    said = None
    for row, name, result, its in _compacted(rows):
        if (times := its.machine) is None:
            continue
        if said is None:
            yield from _line("", [one.head for one in MACHINE], MACHINE)
        if row.row != said:
            said = row.row
            yield from _wrapped(f"{row.row}, {row.unit}")
        used = (times.user_ns + times.system_ns) / result.nr_bytes * GIB_BYTES
        values = (times.user_ns, times.system_ns, times.idle_ns, times.steal_ns, used)
        cells = [_time(one, row.unit, at) for one, at in zip(values, MACHINE, strict=True)]
        yield from _line(name, cells, MACHINE)


def _ratios(rows: Iterable[RowResult]) -> Iterator[str]:
    said = None
    for row, name, _, its in _compacted(rows):
        if its.without_copies_over_before is None and its.hog_over_before is None:
            continue
        if said is None:
            yield from _line("", [one.head for one in RATIOS], RATIOS)
        if row.row != said:
            said = row.row
            yield from _wrapped(row.row)
        cells = [_ratio(its.without_copies_over_before), _ratio(its.hog_over_before)]
        yield from _line(name, cells, RATIOS)


def _compacted(
    rows: Iterable[RowResult],
) -> Iterator[tuple[RowResult, str, Result, Compaction]]:
    for row in rows:
        for name, result in row.variants.items():
            if result.compaction is not None and not is_copy(name):
                yield row, name, result, result.compaction


def _heading(row: RowResult, name: str) -> Iterator[str]:
    """The row's name above its first variant."""
    first = next(one for one, its in row.variants.items() if its.compaction is not None)
    if name == first:
        yield from _wrapped(f"{row.row}, {row.unit}")


def _mode(line: PrintedLine) -> str:
    return ", ".join(str(value) for value in line.params.values())


# --- Batches -----------------------------------------------------------------------------


def _batches(batches: Sequence[Batch]) -> Iterator[str]:
    yield from _line("", [one.head for one in BATCH], BATCH)
    said = None
    for one in batches:
        if one.subject != said:
            said = one.subject
            yield from _wrapped(one.subject)
        in_ns = (one.page_ns, one.copy_ns, one.flush_ns, one.rest_ns, one.dma_page_ns)
        call_us = None if one.call_ns is None else one.call_ns / 1e3
        cells = [_value(value, column) for value, column in zip(in_ns, BATCH, strict=False)]
        yield from _line(str(one.batch_pages), [*cells, _value(call_us, BATCH[-1])], BATCH)


# --- Cells -------------------------------------------------------------------------------


def _line(label: str, cells: Sequence[str], columns: Sequence[Column]) -> Iterator[str]:
    """One line; a label too long for its column has lines of its own rather than being cut."""
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


def _time(value: float | None, unit: str, column: Column) -> str:
    """With its unit, of instructions the prefix alone: the row's heading has the word."""
    if value is None:
        return NONE
    scale, name = scale_of([value], unit)
    short = name.removesuffix("instr").strip()
    text = fit(value / scale, column.width - 1 - len(short) - bool(short))
    return f"{text} {short}".rstrip()


def _value(value: float | None, column: Column) -> str:
    return NONE if value is None else fit(value, column.width - 1, 1)


def _number(value: float | None) -> str:
    return NONE if value is None else fit(value, DID[1].width - 1, 0)


def _of_huge(value: int | None, its: Compaction) -> str:
    return (
        NONE
        if value is None or not its.allocated
        else fit(value / its.allocated, EACH[1].width - 1, 1)
    )


def _hog(per_s: float | None) -> str:
    return NONE if per_s is None else fit(per_s / 1e6, DID[3].width - 1, 1)


def _percent(value: float | None) -> str:
    return NONE if value is None else fit(value, 5)


def _ratio(ratio: Ratio | None) -> str:
    return NONE if ratio is None else interval(ratio)
