# SPDX-License-Identifier: GPL-2.0-only
"""Checks whether a table from the thread of a series holds on this machine."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ream.counted import counted
from ream.experiment import Row
from ream.measure.statistics import Estimate
from ream.measure.verdict import TIMED, Facts, Word, limiting, other_architecture, verdict_of
from ream.published import Table, load_tables
from ream.report.contract import Ratio, Result, RowResult

WORDS: tuple[Word, ...] = (
    "agrees", "stronger", "weaker", "contradicts", "inconclusive", "modelled", "not-run",
)  # fmt: skip


@dataclass(frozen=True)
class OwnVerdict:
    """The verdict on one published ratio. Ratios are of the series over `before`."""

    table: str
    row: str
    word: Word
    ratio: float
    published: float


def own_tables(ids: Collection[str]) -> tuple[Table, ...]:
    """Return the published tables that are from mails with one of these ids."""
    known = {one.strip("<>") for one in ids}
    return tuple(table for table in load_tables() if table.message_id in known)


def own_verdicts(
    tables: Collection[Table],
    row: Row,
    result: RowResult,
    its: Result,
    *,
    amd: bool,
) -> Iterator[OwnVerdict]:
    """Yield a verdict for each ratio of these tables that the row is compared with.

    A row that times only a part of what was published, or that has no verdict, yields none.
    amd: whether the CPU is made by AMD.
    """
    if row.part_of is not None or row.no_verdict is not None or its.ratio is None:
        return
    facts = Facts(
        stand_in=row.stands_in,
        model=row.model_of_device,
        misses_costs=limiting(page_tables=row.times_page_tables, amd=amd),
    )
    measured, floor = Estimate(its.ratio, its.low, its.high, ()), _estimate(result.floor)
    by_id = {table.id: table for table in tables}
    for ref in (ref for ref in row.published if ref.id in by_id):
        if (published := by_id[ref.id].printed(ref, its.threads).ratio) is not None:
            there = by_id[ref.id].architecture
            far = other_architecture(there, TIMED, published)
            said = verdict_of((far,), measured, floor, published, facts)
            yield OwnVerdict(ref.id, row.name, said.word, its.ratio, published)


def _estimate(ratio: Ratio | None) -> Estimate | None:
    return None if ratio is None else Estimate(ratio.ratio, ratio.low, ratio.high, ())


def lines(tables: Collection[str], verdicts: Collection[OwnVerdict]) -> Iterator[str]:
    """Yield a line for each table: how often each verdict was given, and a row of the last one."""
    for table in tables:
        its = [one for one in verdicts if one.table == table]
        said = []
        for word in WORDS:
            if rows := [one for one in its if one.word == word]:
                first = rows[0]
                here, there = 1 / first.ratio, 1 / first.published
                example = f"{first.row}: {here:.2f}x here, {there:.2f}x published"
                said.append(f"{word} in {counted(len(rows), 'row')} ({example})")
        yield f"{table}: {'; '.join(said) or 'none of its rows was timed'}"
