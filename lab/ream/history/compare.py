# SPDX-License-Identifier: GPL-2.0-only
"""Compares several runs: the ratios of each, the pooled ratio, and whether the runs differ.

Only ratios of paired rounds are compared, to `before` or, for a given series, to the tree that it
is based on. Times are never compared across runs.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ream.compare import pool
from ream.compare.alike import Difference, differences
from ream.compare.facts import of_record
from ream.errors import BadUsage
from ream.history.ratios import Place, ratios_of, reference_of, units
from ream.measure.across import chance_of_alike
from ream.measure.statistics import Estimate, outstanding, over_launches
from ream.record.parts import machine_key, machine_line, rows_of, run_id
from ream.record.record import Record

LEAST = 2


@dataclass(frozen=True)
class OfRun:
    """One run's ratio of a row and variant."""

    run: str
    machine: str
    estimate: Estimate


@dataclass(frozen=True)
class ComparedLine:
    """One row and variant in all runs that contain it."""

    row: str
    variant: str
    unit: str
    runs: tuple[OfRun, ...]
    pooled: Estimate | None
    """The ratio pooled over launches within machines, then over machines. None if it cannot be
    pooled, for the reason in why_not."""
    nr_machines: int
    chance: float | None
    """The p-value of the hypothesis that all runs have the same ratio; None if it is not tested."""
    over_runs: Estimate | None
    """The estimate with runs, instead of launches, as the replicates; None for a single run, and
    for ratios that are not of one thing."""
    other: tuple[Difference, ...] = ()
    """Differences for which the ratios are not of one thing, such as other patches of one name."""
    why_not: str | None = None
    """Why the line is not pooled."""
    untested: str | None = None
    """Why the line is not tested."""
    differ: bool | None = None
    """Whether runs differ more than their launches explain, corrected for the number of lines."""


@dataclass(frozen=True)
class Unlike:
    """The differences between a run and the first one."""

    run: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Compared:
    """The result of comparing several runs."""

    runs: tuple[str, ...]
    experiment: str
    stage: str
    machines: Mapping[str, str]
    """A short description of each machine, by its key."""
    unlike: tuple[Unlike, ...]
    lines: tuple[ComparedLine, ...]
    missing: Mapping[str, tuple[str, ...]]
    """By run, the rows that other runs have and this one lacks."""


def compare(records: Sequence[Record], *, unlike: bool = False) -> Compared:
    """Compare runs, in the order given.

    Raises BadUsage for fewer than two runs, for a repeated run, for runs without any ratio, and,
    unless `unlike`, for runs that do not measure the same thing.
    """
    names = [run_id(record) for record in records]
    if len(records) < LEAST:
        raise BadUsage(f"it takes two runs to compare, there is {len(records)}")
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise BadUsage(f"{twice[0]} is named twice: a run agrees with itself")
    if not unlike:
        pool.refuse_unlike("compare", records, "--unlike compares them all the same")
    ratios = [ratios_of(record) for record in records]
    if not any(ratios):
        raise BadUsage(f"none of {', '.join(names)} has a ratio to before: nothing to compare")
    first = of_record(records[0])
    return Compared(
        runs=tuple(names),
        experiment=str(records[0].run.get("experiment")),
        stage=str(records[0].run.get("stage")),
        machines={machine_key(record): machine_line(record) for record in records},
        unlike=tuple(
            Unlike(run_id(other), found)
            for other in records[1:]
            if (found := differences("compare", first, of_record(other)))
        ),
        lines=tuple(_judged(_lines(records, ratios))),
        missing=_missing(records),
    )


def _lines(
    records: Sequence[Record], ratios: Sequence[Mapping[Place, Estimate]]
) -> Iterator[ComparedLine]:
    places = dict.fromkeys(place for its in ratios for place in its)
    unit = {row: its for record in reversed(records) for row, its in units(record).items()}
    for row, variant in places:
        having = [
            (record, its[row, variant])
            for record, its in zip(records, ratios, strict=True)
            if (row, variant) in its
        ]
        yield _line((row, variant), unit.get(row, "ns"), having)


def _line(place: Place, unit: str, having: Sequence[tuple[Record, Estimate]]) -> ComparedLine:
    row, variant = place
    estimates = [estimate for _, estimate in having]
    records = [record for record, _ in having]
    runs = tuple(
        OfRun(run_id(record), machine_key(record), estimate) for record, estimate in having
    )
    to = sorted({reference_of(record, row, variant) for record in records})
    other = pool.why_not_pooled(records, row, (*to, variant))
    untested = _why_untested(row, to, having)
    other_ratio = f"ratios to {' and to '.join(to)}" if len(to) > 1 else None
    why_not = "; ".join(one.said() for one in other) or other_ratio or pool.unknown_machine(records)
    several = not (other or other_ratio) and len(estimates) >= LEAST
    return ComparedLine(
        row=row,
        variant=variant,
        unit=unit,
        runs=runs,
        pooled=None if why_not else pool.pooled((one.machine, one.estimate) for one in runs).whole,
        nr_machines=len({one.machine for one in runs}),
        chance=None if untested else chance_of_alike(estimates),
        over_runs=over_launches([math.log(one.ratio) for one in estimates]) if several else None,
        other=other,
        why_not=why_not,
        untested=untested,
    )


def _why_untested(
    row: str, to: Sequence[str], having: Sequence[tuple[Record, Estimate]]
) -> str | None:
    """The reason why a line is not tested; None if it is."""
    if len(having) < LEAST:
        return "in one run alone"
    if len({units(record).get(row) for record, _ in having}) > 1:
        return "of times in one run and of counts in another"
    if len(to) > 1:
        return "to another variant in each run"
    if chance_of_alike(estimate for _, estimate in having) is None:
        return "of one launch in a run"
    return None


def _judged(lines: Iterable[ComparedLine]) -> Iterator[ComparedLine]:
    """Set `differ` of each line, corrected for the number of lines (Benjamini-Hochberg)."""
    lines = tuple(lines)
    stand = iter(outstanding([line.chance for line in lines if line.chance is not None]))
    for line in lines:
        yield replace(line, differ=None if line.chance is None else next(stand))


def _missing(records: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    rows = [rows_of(record) for record in records]
    every = dict.fromkeys(name for its in rows for name in its)
    return {
        run_id(record): lacking
        for record, its in zip(records, rows, strict=True)
        if (lacking := tuple(name for name in every if name not in its))
    }
