# SPDX-License-Identifier: GPL-2.0-only
"""Summarises the columns that an experiment declares, for the object of `--json`."""

from collections.abc import Iterable, Mapping
from statistics import median

from ream.experiment.columns import Column, Columns
from ream.measure import statistics
from ream.measure.sample import Sample
from ream.measure.statistics import Estimate
from ream.published import Table
from ream.report.contract import ColumnValue, PrintedLine, PrintedTable, Ratio, RowResult
from ream.report.numbers import ratio_of, rounded

OVER_BEFORE = "over_before"
"""The key, among a variant's columns, of the ratios of columns that published tables have."""


def columns_of(
    declared: Columns,
    samples: Iterable[Sample],
    subject: str,
    *,
    to: str,
    counted: bool = False,
    exact: bool = False,
) -> Mapping[str, ColumnValue] | None:
    """Summarise the declared columns of one variant in one row; None if no sample has a value.

    samples: of the row. to: the variant that ratios refer to. counted: values are counts of
    instructions, not times. exact: these counts repeat in every launch.
    """
    samples = tuple(samples)

    def ratio(column: Column) -> Ratio | None:
        if subject == to:
            return None
        return ratio_of(over(column, samples, subject, to=to, counted=counted, exact=exact))

    own = _of(samples, subject)
    found: dict[str, ColumnValue] = {}
    parts: dict[str, dict[str, int | Ratio]] = {}
    for column in declared.columns:
        if column.summarised == "ratio":
            found[column.name] = ratio(column)
            continue
        values = [value for one in own if (value := column.of(one, counted)) is not None]
        name, _, part = column.name.partition(".")
        if part and values:
            parts.setdefault(name, {})[part] = round(median(values))
        if part:
            found[name] = parts.get(name)
        elif not values:
            found[name] = None
        else:
            whole = column.summarised == "whole"
            found[name] = round(median(values)) if whole else rounded(median(values))
    if not any(value is not None for value in found.values()):
        return None
    found[OVER_BEFORE] = {
        column.name: its
        for column in declared.columns
        if column.published and (its := ratio(column)) is not None
    }
    return found


def over(
    column: Column,
    samples: Iterable[Sample],
    subject: str,
    *,
    to: str,
    counted: bool = False,
    exact: bool = False,
) -> Estimate | None:
    """The ratio subject/to of a column, paired by launch and round as times are.

    None if a sample of either variant lacks the value or has 0, as for a CPU that never idles.
    """
    samples = tuple(samples)
    own, base = (_places(column, _of(samples, name), counted=counted) for name in (subject, to))
    return statistics.paired(own, base, exact=exact)


def _of(samples: Iterable[Sample], subject: str) -> tuple[Sample, ...]:
    return tuple(one for one in samples if one.role == "variant" and one.subject == subject)


def _places(
    column: Column, samples: tuple[Sample, ...], *, counted: bool
) -> dict[tuple[int, int], float]:
    """The values by launch and round; empty unless every sample has one above 0.

    Leaving out the samples with 0 would bias the ratio towards boots that have some.
    """
    found = {(one.launch, one.round): its for one in samples if (its := column.of(one, counted))}
    return found if len(found) == len(samples) else {}


def printed_tables(
    results: Iterable[RowResult], tables: Iterable[Table], experiment: str
) -> tuple[PrintedTable, ...]:
    """The published tables of an experiment as printed, if a row of this run has columns."""
    if not any(one.columns for result in results for one in result.variants.values()):
        return ()
    return tuple(
        PrintedTable(
            id=table.id,
            source=", ".join(str(part) for part in (table.author, table.date) if part),
            machine=table.machine,
            method=table.method,
            unit=table.unit,
            better=table.better,
            nr_huge=table.nr_huge,
            lines=tuple(
                PrintedLine(params=row.params, values=row.values, sd=row.sd) for row in table.rows
            ),
        )
        for table in tables
        if table.experiment == experiment
    )
