# SPDX-License-Identifier: GPL-2.0-only
"""Finds what kernels of a table's architecture execute for its lines, as counts without verdict."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ream.experiment import BEFORE, PUBLISHED, Experiment
from ream.published import Table
from ream.replicate.claims import Claim, measures
from ream.report.contract import Counted, RowResult, Summary

INSTRUCTIONS = "instructions"


@dataclass(frozen=True)
class Counts:
    """The instructions of one row in a counted record, for each unit that the row is about."""

    record: str
    row: str
    per: str
    """The unit, such as page."""
    before: float
    published: float

    @property
    def ratio(self) -> float:
        """Instructions of `published` over those of `before`."""
        return self.published / self.before


def counts_of(
    table: Table,
    claim: Claim,
    experiments: Iterable[Experiment],
    counted: Iterable[Summary],
) -> tuple[Counts, ...]:
    """The counts of rows of the table's architecture that name this line, by record and row.

    counted: records of kernels of that architecture that were counted.
    """
    names = {
        row.name
        for experiment in experiments
        if experiment.name == table.experiment
        for row in experiment.rows
        if row.arch == table.architecture
        and any(ref.id == table.id and measures(ref, claim) for ref in row.published)
    }
    return tuple(
        counts
        for summary in counted
        if summary.experiment == table.experiment
        for row in summary.rows
        if row.row in names
        for counts in _of_row(summary.run, row)
    )


def _of_row(record: str, row: RowResult) -> Iterator[Counts]:
    its = row.counted
    if its is None or not {BEFORE, PUBLISHED} <= its.variants.keys():
        return
    before, published = (_each(its, name) for name in (BEFORE, PUBLISHED))
    if before and published:
        yield Counts(record, row.row, its.per, before, published)


def _each(its: Counted, variant: str) -> float:
    return its.variants[variant].get(INSTRUCTIONS, 0) / its.number_of(variant)
