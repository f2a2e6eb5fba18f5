# SPDX-License-Identifier: GPL-2.0-only
"""Ratios of several runs as one: by machine, then over machines, if the rules let them be pooled.

Only ratios are pooled. Within a machine a launch is the replicate; over machines it is the machine,
since what one of them does a hundred times says nothing of the next.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ream.compare.alike import check_all, differences, told_apart
from ream.compare.facts import of_record
from ream.compare.rules import RULES
from ream.experiment import BEFORE
from ream.measure import across
from ream.measure.statistics import Estimate
from ream.record.parts import machine_id, machine_key, machine_line, run_id
from ream.record.record import Record


@dataclass(frozen=True)
class Pooled:
    """A ratio of each machine, all launches of its runs together, and of all machines."""

    by_machine: Mapping[str, Estimate]
    whole: Estimate
    """Over machines; of a single one over its launches."""


def pooled(having: Iterable[tuple[str, Estimate]]) -> Pooled:
    """Estimates, each with its machine; raises ValueError if there is none."""
    by_key: dict[str, list[Estimate]] = {}
    for key, estimate in having:
        by_key.setdefault(key, []).append(estimate)
    by_machine = {key: across.pooled(its) for key, its in by_key.items()}
    return Pooled(by_machine, across.over_machines(by_machine))


def refuse_unlike(records: Sequence[Record], way_out: str) -> None:
    """Raises BadUsage with what makes runs' numbers ones of different things, and `way_out`."""
    check_all("compare", [(run_id(one), of_record(one)) for one in records], way_out)


def check_poolable(records: Sequence[Record], row: str, way_out: str) -> tuple[str, ...]:
    """What differs between records of a row that are samples of one ratio all the same.

    Raises BadUsage with what makes them samples of different ones, and `way_out`.
    """
    sides = [(run_id(one), of_record(one, row=row)) for one in records]
    check_all("pool", sides, way_out)
    (_, first), *others = sides
    noted = dict.fromkeys(
        one.said() for _, other in others for one in differences("pool", first, other)
    )
    return (*noted, *filter(None, (unknown_machine(records),)))


def why_not_pooled(records: Sequence[Record], variant: str) -> str | None:
    """What makes two runs' ratios of a variant ones of different code, first of all.

    What makes runs no runs to compare at all has been said, and `--force` is beyond it.
    """
    its = [(run_id(one), of_record(one, variants=(BEFORE, variant))) for one in records]
    for (_, a), (_, b) in combinations(told_apart("pool", its), 2):
        for one in differences("pool", a, b):
            if one.refuses and RULES[one.thing.rule].compare != "refuse":
                return one.said()
    return None


def unknown_machine(records: Sequence[Record]) -> str | None:
    """That a record without a machine's id may be of the same machine as one that has an id.

    Their launches would be one machine's, or stand for two: these are two different numbers.
    """
    keys: dict[str, set[str]] = {}
    for record in records:
        keys.setdefault(machine_line(record), set()).add(machine_key(record))
    unsure = any(
        machine_id(record) is None and len(keys[machine_line(record)]) > 1 for record in records
    )
    return "one has no machine id: one machine or two is not known" if unsure else None
