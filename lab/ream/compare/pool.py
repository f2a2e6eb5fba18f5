# SPDX-License-Identifier: GPL-2.0-only
"""Pools ratios of several runs by machine, then over machines, if the rules allow it.

Only ratios are pooled. Within a machine a launch is the replicate; over machines it is the machine,
since repeated runs on one machine do not predict another.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ream.compare.alike import Difference, check_all, differences, told_apart
from ream.compare.facts import of_record
from ream.compare.rules import Question
from ream.measure import across
from ream.measure.statistics import Estimate
from ream.record.parts import machine_id, machine_key, machine_line, run_id
from ream.record.record import Record


@dataclass(frozen=True)
class Pooled:
    """The pooled ratio of each machine over all launches of its runs, and of all machines."""

    by_machine: Mapping[str, Estimate]
    whole: Estimate
    """The estimate over machines; for a single machine, over its launches."""


def pooled(having: Iterable[tuple[str, Estimate]]) -> Pooled:
    """Pool pairs of a machine and an estimate; raises ValueError if there is none."""
    by_key: dict[str, list[Estimate]] = {}
    for key, estimate in having:
        by_key.setdefault(key, []).append(estimate)
    by_machine = {key: across.pooled(its) for key, its in by_key.items()}
    return Pooled(by_machine, across.over_machines(by_machine))


def refuse_unlike(question: Question, records: Sequence[Record], way_out: str) -> None:
    """Raise BadUsage with all differences if the runs do not measure the same thing.

    way_out: the last line of the message.
    """
    check_all(question, [(run_id(one), of_record(one)) for one in records], way_out)


def check_poolable(records: Sequence[Record], row: str, way_out: str) -> tuple[str, ...]:
    """Differences between records of a row that may be pooled, as sentences.

    Raises BadUsage if the records do not measure the same ratio, with the reasons and `way_out`.
    """
    sides = [(run_id(one), of_record(one, row=row)) for one in records]
    check_all("pool", sides, way_out)
    (_, first), *others = sides
    noted = dict.fromkeys(
        one.said() for _, other in others for one in differences("pool", first, other)
    )
    return (*noted, *filter(None, (unknown_machine(records),)))


def why_not_pooled(
    records: Sequence[Record], row: str, variants: Iterable[str]
) -> tuple[Difference, ...]:
    """Differences for which two runs' ratios of a row are not of one thing; empty without any.

    variants: the names of those whose code is in the ratio.
    """
    names = tuple(variants)
    its = [(run_id(one), of_record(one, row=row, variants=names)) for one in records]
    found = (
        one
        for (_, a), (_, b) in combinations(told_apart("pool", its), 2)
        for one in differences("pool", a, b)
        if one.refuses
    )
    return tuple({one.what: one for one in found}.values())


def unknown_machine(records: Sequence[Record]) -> str | None:
    """A note that a record without a machine id may be of the same machine as one with an id.

    Their launches would then be of one machine instead of two, which gives other intervals.
    """
    keys: dict[str, set[str]] = {}
    for record in records:
        keys.setdefault(machine_line(record), set()).add(machine_key(record))
    unsure = any(
        machine_id(record) is None and len(keys[machine_line(record)]) > 1 for record in records
    )
    return "one has no machine id: one machine or two is not known" if unsure else None
