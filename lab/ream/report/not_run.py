# SPDX-License-Identifier: GPL-2.0-only
"""Folds rows that did not run: reasons that differ only in numbers share one line."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ream.counted import counted
from ream.report.contract import RowResult

_NUMBER = re.compile(r"\d+")
MOST_NAMED = 3
"""A line names at most this many rows; of more, it names the first and the last."""


@dataclass(frozen=True)
class NotRun:
    """Rows that did not run for the same reason."""

    rows: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        if len(self.rows) <= MOST_NAMED:
            return f"{', '.join(self.rows)}: {self.reason}"
        ends = f"{self.rows[0]} to {self.rows[-1]}"
        return f"{ends} ({counted(len(self.rows), 'row')}): {self.reason}"


def not_run(rows: Iterable[RowResult]) -> tuple[NotRun, ...]:
    """All rows without numbers, grouped by reason, in the order of their first rows."""
    by_form: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        if not row.variants or row.skipped is not None:
            reason = row.skipped or "no reason recorded"
            by_form.setdefault(_NUMBER.sub("#", reason), []).append((row.row, reason))
    return tuple(
        NotRun(tuple(name for name, _ in its), _together([reason for _, reason in its]))
        for its in by_form.values()
    )


def folded(rows: Iterable[RowResult]) -> tuple[NotRun, ...]:
    """The groups of several rows; a single row shows its reason in its own place."""
    return tuple(one for one in not_run(rows) if len(one.rows) > 1)


def folded_names(rows: Iterable[RowResult]) -> frozenset[str]:
    """The names of all rows in groups of several."""
    return frozenset(name for one in folded(rows) for name in one.rows)


def _together(reasons: list[str]) -> str:
    """One sentence for all reasons; a number that differs becomes its range."""
    columns = zip(*(map(int, _NUMBER.findall(reason)) for reason in reasons), strict=True)
    said = iter(
        str(its[0]) if len(set(its)) == 1 else f"{min(its)} to {max(its)}" for its in columns
    )
    return _NUMBER.sub(lambda _: next(said), reasons[0])
