# SPDX-License-Identifier: GPL-2.0-only
"""Rows that differ in one number alone, as their names say: an axis, and a curve over it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ream.experiment import BEFORE
from ream.report.contract import Result, RowResult

LEAST = 3
"""Rows that make a curve."""
ANY = "*"

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Sweep:
    """Rows over a field of theirs, ascending."""

    name: str
    """What their names have in common, as fork-*-cold."""
    field: str
    labels: tuple[str, ...]
    """What stands for the star, as 64k."""
    rows: tuple[RowResult, ...]


def sweeps(rows: Iterable[RowResult]) -> tuple[Sweep, ...]:
    """The curves that there are, in the order of their first rows; a row is in one at most.

    Rows that were not run are in none.
    """
    ran = [row for row in rows if row.variants and row.skipped is None]
    groups: dict[tuple[int, str], list[RowResult]] = {}
    for row in ran:
        for place, name in _patterns(row.row):
            groups.setdefault((place, name), []).append(row)
    taken: set[str] = set()
    found = []
    for (place, name), its in sorted(groups.items(), key=lambda one: -len(one[1])):
        free = [row for row in its if row.row not in taken]
        if (one := _swept(name, place, free)) is not None:
            taken.update(row.row for row in one.rows)
            found.append(one)
    order = {row.row: number for number, row in enumerate(ran)}
    return tuple(sorted(found, key=lambda one: min(order[row.row] for row in one.rows)))


def _patterns(name: str) -> Iterator[tuple[int, str]]:
    words = name.split("-")
    for place, word in enumerate(words):
        if _NUMBER.search(word):
            yield place, "-".join((*words[:place], ANY, *words[place + 1 :]))


def _swept(name: str, place: int, rows: Sequence[RowResult]) -> Sweep | None:
    if len(rows) < LEAST:
        return None
    labels = {row.row: row.row.split("-")[place] for row in rows}
    fields = [field for field in rows[0].params if _differs(field, rows)]
    if not fields or len({row.unit for row in rows}) > 1:
        return None
    field = next((one for one in fields if _is_meant(one, labels, rows)), fields[0])
    ordered = sorted(rows, key=lambda row: _value(row, field))
    return Sweep(name, field, tuple(labels[row.row] for row in ordered), tuple(ordered))


def _value(row: RowResult, field: str) -> float:
    value = row.params.get(field)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else -1.0


def _differs(field: str, rows: Sequence[RowResult]) -> bool:
    """Whether it is a number, and another one in every row."""
    values = {_value(row, field) for row in rows}
    return len(values) == len(rows) and min(values) >= 0


def _is_meant(field: str, labels: dict[str, str], rows: Sequence[RowResult]) -> bool:
    """Whether the numbers in the names may be this field's, perhaps in another unit."""
    numbers = [_NUMBER.search(labels[row.row]) for row in rows]
    pairs = zip(numbers, rows, strict=True)
    return all(
        found and int(found[0]) and _value(row, field) % int(found[0]) == 0 for found, row in pairs
    )


def each_of(result: Result) -> float | None:
    """Time, or instructions, for each page or entry."""
    return result.per_page or result.ns_per_page or result.per_entry


def ends_of(row: RowResult, result: Result) -> tuple[float, float] | None:
    """The ends of that, by the interval of the ratio; None of what is compared with nothing."""
    tree = row.variants.get(result.compared_with or BEFORE)
    base = None if tree is None else each_of(tree)
    if base is None or result.low is None or result.high is None:
        return None
    return base * result.low, base * result.high
