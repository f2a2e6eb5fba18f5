# SPDX-License-Identifier: GPL-2.0-only
"""Several runs side by side: each one's ratios, all of them pooled, and whether runs differ.

Only ratios within a round are compared, to `before` or, of a series that somebody gave, to the
tree it stands on: a time belongs to its run.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ream.compare import pool
from ream.compare.alike import Difference, differences
from ream.compare.facts import of_record
from ream.errors import BadUsage
from ream.history.ratios import Place, ratios_of, units
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
    """One row and variant over all runs that have it."""

    row: str
    variant: str
    unit: str
    runs: tuple[OfRun, ...]
    pooled: Estimate | None
    """Launches of a machine's runs together, then over machines; None: why_not says why."""
    nr_machines: int
    chance: float | None
    """How often runs of the same truth would differ as much; None: it cannot be said."""
    over_runs: Estimate | None
    """With runs as the replicates, in place of launches; None of a single run."""
    why_not: str | None = None
    differ: bool | None = None
    """Whether runs differ more than their launches explain, corrected for the number of lines."""


@dataclass(frozen=True)
class Unlike:
    """In what a run differs from the first, though both may be compared."""

    run: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Compared:
    runs: tuple[str, ...]
    experiment: str
    stage: str
    machines: Mapping[str, str]
    """By key, each machine in a few words."""
    unlike: tuple[Unlike, ...]
    lines: tuple[ComparedLine, ...]
    missing: Mapping[str, tuple[str, ...]]
    """By run, rows that others have and it has not."""


def compare(records: Sequence[Record], *, force: bool = False) -> Compared:
    """Runs side by side, in the order given.

    Raises BadUsage for fewer than two, for one given twice, for runs without any ratio, and,
    unless `force`, for runs whose numbers are of different things.
    """
    names = [run_id(record) for record in records]
    if len(records) < LEAST:
        raise BadUsage(f"it takes two runs to compare, there is {len(records)}")
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise BadUsage(f"{twice[0]} is named twice: a run agrees with itself")
    if not force:
        pool.refuse_unlike(records, "--force compares them all the same")
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
    other_code = pool.why_not_pooled(records, variant)
    why_not = other_code or pool.unknown_machine(records)
    several = not other_code and len(estimates) >= LEAST
    return ComparedLine(
        row=row,
        variant=variant,
        unit=unit,
        runs=runs,
        pooled=None if why_not else pool.pooled((one.machine, one.estimate) for one in runs).whole,
        nr_machines=len({one.machine for one in runs}),
        chance=None if other_code else chance_of_alike(estimates),
        over_runs=over_launches([math.log(one.ratio) for one in estimates]) if several else None,
        why_not=why_not,
    )


def _judged(lines: Iterable[ComparedLine]) -> Iterator[ComparedLine]:
    """Whether runs differ, with as many lines as there are: one in twenty would by chance."""
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
