# SPDX-License-Identifier: GPL-2.0-only
"""Groups rows whose names differ in one number only, so that they form a curve over it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ream.experiment import BEFORE
from ream.report.contract import Result, RowResult

LEAST = 3
"""The smallest number of rows that forms a curve."""
ANY = "*"

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Sweep:
    """Rows that differ in the value of one parameter, in ascending order."""

    name: str
    """The common part of the rows' names, such as `fork-*-cold`."""
    field: str
    labels: tuple[str, ...]
    """The text of each row's name in the place of the star, such as `64k`."""
    rows: tuple[RowResult, ...]

    @property
    def title(self) -> str:
        """What the titles of its rows have in common, without the number in which they differ.

        It is the rows' common name if they have no title, or nothing in common.
        """
        titles = [(row.title or self.name).split(", ") for row in self.rows]
        own = {word.removesuffix("s") for word in self.field.split("_")}
        said = []
        for parts in zip(*titles, strict=False):
            same = len(set(parts)) == 1
            text = parts[0] if same else " ".join(_QUANTITY.sub("", parts[0]).split())
            if text and (same or text.split()[0].removesuffix("s") not in own):
                said.append(text)
        return ", ".join(said) or self.name


_QUANTITY = re.compile(r"(?:\bof )?\b\d+(?: [KMGT]iB)?\b")

_KINDS_OF_NUMBERS = (
    (re.compile(r"nr_pages"), "memory"),
    (re.compile(r"nr_(\w+)"), r"number of \1"),
    (re.compile(r"(\w+)_(?:bytes|kib|mib|gib)"), r"\1 size"),
    (re.compile(r"(\w+)_pages"), r"pages of a \1"),
)


def words_of(field: str) -> str:
    """The name of a row's parameter as a reader would call it: `folio_kib` is the folio size."""
    for name, said in _KINDS_OF_NUMBERS:
        if found := name.fullmatch(field):
            field = found.expand(said)
            break
    return field.replace("_", " ")


def sweeps(rows: Iterable[RowResult]) -> tuple[Sweep, ...]:
    """All curves in the order of their first rows. Each row belongs to at most one.

    Rows that did not run belong to none.
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
    """Whether this parameter is a number with a different value in every row."""
    values = {_value(row, field) for row in rows}
    return len(values) == len(rows) and min(values) >= 0


def _is_meant(field: str, labels: dict[str, str], rows: Sequence[RowResult]) -> bool:
    """Whether the numbers in the names can be values of this parameter, perhaps in another unit."""
    numbers = [_NUMBER.search(labels[row.row]) for row in rows]
    pairs = zip(numbers, rows, strict=True)
    return all(
        found and int(found[0]) and _value(row, field) % int(found[0]) == 0 for found, row in pairs
    )


def each_of(result: Result) -> float | None:
    """Time or instructions per page or entry; None if the row has neither."""
    return result.per_page or result.ns_per_page or result.per_entry


def ends_of(row: RowResult, result: Result) -> tuple[float, float] | None:
    """The ends of `each_of` according to the ratio's interval; None for a reference variant."""
    tree = row.variants.get(result.compared_with or BEFORE)
    base = None if tree is None else each_of(tree)
    if base is None or result.low is None or result.high is None:
        return None
    return base * result.low, base * result.high
