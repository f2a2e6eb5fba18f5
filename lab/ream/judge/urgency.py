# SPDX-License-Identifier: GPL-2.0-only
"""Selects the rows to time: first those with higher counts, then each operation in turn.

The most affected row of an operation, whose counts change by the largest share, comes first.
Another operation shows more of a change than another size of the same operation.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import takewhile

from ream.experiment import IMPLIED, Experiment, Row
from ream.judge.judgement import Operation, affected
from ream.measure.plan import ASSUMED_BYTES_PER_S, bytes_gone_by
from ream.measure.statistics import LEAST_LAUNCHES

FIRST_LAUNCHES = 6
TRIED_SHARE = 0.1
"""Share of the time that is spent to find how long a round takes."""
S_PER_MINUTE = 60


def rows_to_try(
    experiment: Experiment, known: Mapping[str, Operation], minutes: float
) -> Experiment:
    """Return the experiment with the rows whose round should take only a small part of the time.

    The estimate is for a slow machine that moves all bytes of a row.
    """
    budget_s = minutes * S_PER_MINUTE * TRIED_SHARE
    spent, chosen = 0.0, list[str]()
    for row in by_urgency(experiment, known):
        spent += expected_s(row)
        if spent > budget_s and chosen:
            break
        chosen.append(row.name)
    return experiment.only(chosen)


def rows_in_time(
    experiment: Experiment, known: Mapping[str, Operation], slowness: float, minutes: float
) -> Experiment:
    """Return the experiment with the rows and launches that fit into a time.

    slowness: ratio of the real to the expected time of a row's round. Half of the time is for the
    first launches, the rest for those that intervals need. Rows whose counts grew come first, and
    rows whose counts are all equal last. Among the others, each operation comes once before its
    other sizes: the most affected first, and the quickest of equally affected ones. A row that does
    not fit is replaced by others of the same urgency. The result has at least one row with at least
    LEAST_LAUNCHES launches.
    """
    ordered = by_urgency(experiment, known)
    most = _class(known.get(ordered[0].name))
    budget_s = minutes * S_PER_MINUTE / 2
    spent, chosen = 0.0, list[str]()
    for row in ordered:
        if not chosen and _class(known.get(row.name)) != most:
            break
        takes_s = slowness * expected_s(row) * row.rounds * FIRST_LAUNCHES
        if spent + takes_s <= budget_s:
            spent += takes_s
            chosen.append(row.name)
    if chosen:
        return experiment.only(chosen).resized(launches=FIRST_LAUNCHES)
    row_s = slowness * expected_s(ordered[0])
    launches = min(FIRST_LAUNCHES, max(LEAST_LAUNCHES, int(budget_s / max(row_s, 1e-9))))
    return experiment.only([ordered[0].name]).resized(launches=launches, rounds=1)


def expected_s(row: Row) -> float:
    """Return the expected seconds of one round of a row, with all variants."""
    once_ = row.model_copy(update={"rounds": 1})
    return bytes_gone_by([once_], nr_variants=len(IMPLIED) + 2, launches=1) / ASSUMED_BYTES_PER_S


def by_urgency(experiment: Experiment, known: Mapping[str, Operation]) -> list[Row]:
    """Return all rows, the most urgent first; equally urgent operations take turns."""
    nr_before = Counter[tuple[int, bool, str]]()

    def turn(row: Row) -> tuple[int, bool, int]:
        one = known.get(row.name)
        its = _class(one), _is_unaffected(one)
        nr_before[*its, operation_of(row.name)] += 1
        return *its, nr_before[*its, operation_of(row.name)]

    return sorted(
        sorted(experiment.rows, key=lambda row: _urgency(known.get(row.name), row)), key=turn
    )


def operation_of(row: str) -> str:
    """Return the part of a row's name before its first size, as fork of fork-64k-cold.

    If the name begins with a size, return its other words.
    """
    words = row.split("-")
    before = [*takewhile(lambda word: not _is_size(word), words)]
    return "-".join(before or [word for word in words if not _is_size(word)]) or row


def _is_size(word: str) -> bool:
    return any(map(str.isdigit, word))


def _is_unaffected(one: Operation | None) -> bool:
    return one is not None and one.counted is not None and not affected(one.counted)


def _urgency(one: Operation | None, row: Row) -> tuple[int, float, float]:
    """Return a sort key, ascending, for the urgency of a row.

    It has only one digit of how much a row is affected, as more digits do not predict times.
    """
    if one is None or one.counted is None:
        return _class(one), 0.0, expected_s(row)
    return _class(one), -float(f"{affected(one.counted):.0e}"), expected_s(row)


def _class(one: Operation | None) -> int:
    """Return 0 for rows that execute more, 1 for mixed or uncounted rows, 2 for others."""
    if one is None or one.counted is None:
        return 1
    return {"more": 0, "mixed": 1}.get(one.outcome, 2)
