# SPDX-License-Identifier: GPL-2.0-only
"""Which rows are timed, as time suffices: those that count more, then each operation in turn.

Of one operation the row comes first that is affected most: it executes the largest share of what is
changed. Another operation shows more of a change than another size of the same one.
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
"""Of the time, to find how long a round takes."""
S_PER_MINUTE = 60


def rows_to_try(
    experiment: Experiment, known: Mapping[str, Operation], minutes: float
) -> Experiment:
    """The experiment with the rows of which a round should take a small part of the time at most.

    The estimate is of a slow machine that moves all bytes that a row is about.
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
    """The experiment with the rows and launches that a time suffices for: at least one of two.

    slowness: of what is expected of a round of a row, how much it really takes. Half of the time is
    for the first launches, the rest for those that intervals need. Rows whose counts have grown
    come first, and last those whose counts all are equal. Among the others each operation comes
    once before any of its other sizes: those first that are affected most, and of those that are
    affected alike, the quick ones. A row that does not fit gives way to others that
    are as urgent.
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
    """What one round of a row is expected to take, of all variants."""
    once_ = row.model_copy(update={"rounds": 1})
    return bytes_gone_by([once_], nr_variants=len(IMPLIED) + 2, launches=1) / ASSUMED_BYTES_PER_S


def by_urgency(experiment: Experiment, known: Mapping[str, Operation]) -> list[Row]:
    """All rows, the most urgent first; of rows as urgent, each operation once, then once more."""
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
    """What a row's name has before its first size, as fork of fork-64k-cold; else behind it."""
    words = row.split("-")
    before = [*takewhile(lambda word: not _is_size(word), words)]
    return "-".join(before or [word for word in words if not _is_size(word)]) or row


def _is_size(word: str) -> bool:
    return any(map(str.isdigit, word))


def _is_unaffected(one: Operation | None) -> bool:
    return one is not None and one.counted is not None and not affected(one.counted)


def _urgency(one: Operation | None, row: Row) -> tuple[int, float, float]:
    """What puts a row in front of others, as a key that sorts ascending.

    By one digit of how much it is affected, as more say nothing of time.
    """
    if one is None or one.counted is None:
        return _class(one), 0.0, expected_s(row)
    return _class(one), -float(f"{affected(one.counted):.0e}"), expected_s(row)


def _class(one: Operation | None) -> int:
    """Rows that execute more come first, then those that do in part, or are not counted."""
    if one is None or one.counted is None:
        return 1
    return {"more": 0, "mixed": 1}.get(one.outcome, 2)
