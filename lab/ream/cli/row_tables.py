# SPDX-License-Identifier: GPL-2.0-only
"""Rows of an experiment as tables: a line for each kind of row, a column for each size of it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING

from ream.report.shared import together

if TYPE_CHECKING:
    from ream.experiment.shape import RowBase

_NUMBER = re.compile(r"\d")
_NUMBERS = re.compile(r"\d+")
_SIZE = re.compile(r"(\d+)([A-Za-z]*)")
EACH = "each"
"""Stands in the title of several rows for the word in which their names differ."""

MOST_VARYING = 2
"""Parts of titles that may differ among rows in one line."""

COLUMN = "#"
"""Stands in a name for the head of a column."""

_UNITS = "kmgt"


@dataclass(frozen=True)
class RowLine:
    """Rows whose names differ in one part."""

    rows: tuple["RowBase", ...]
    place: int
    """Which part of their names that is."""

    def name(self, unit: str = "") -> str:
        """Their name, with COLUMN for what differs, before a unit that no column's head has."""
        parts = self.rows[0].name.split("-")
        return "-".join([*parts[: self.place], f"{COLUMN}{unit}", *parts[self.place + 1 :]])

    @property
    def values(self) -> tuple[str, ...]:
        """That part of each name."""
        return tuple(row.name.split("-")[self.place] for row in self.rows)

    @property
    def title(self) -> str:
        """Their titles as one."""
        return title_of(self.rows)


@dataclass(frozen=True)
class RowTable:
    """Lines of rows that differ in a part of the same kind, such as a size."""

    lines: tuple[RowLine, ...]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """All values of that part: numbers from the smallest on, words as they come."""
        found = dict.fromkeys(value for line in self.lines for value in line.values)
        sizes = {value: size for value in found if (size := _size(value)) is not None}
        if len(sizes) < len(found):
            return tuple(found)
        return tuple(sorted(sizes, key=lambda value: sizes[value]))

    @property
    def unit(self) -> str:
        """The letters that all values end in, as "cpu"; none if they differ."""
        ends = {found[2] if (found := _SIZE.fullmatch(one)) else "" for one in self.columns}
        return ends.pop() if len(ends) == 1 else ""

    @property
    def heads(self) -> tuple[str, ...]:
        """The columns without their unit, which names have."""
        return tuple(value.removesuffix(self.unit) for value in self.columns)

    def cells(self, line: RowLine) -> tuple[str, ...]:
        """A mark in each column of which the line has a row."""
        return tuple("x" if value in line.values else "" for value in self.columns)


def _size(value: str) -> float | None:
    """A number with its unit, as 64k or 4KiB; None for a word."""
    found = _SIZE.fullmatch(value)
    if found is None:
        return None
    unit = found[2][:1].lower()
    return int(found[1]) * 1024.0 ** (_UNITS.find(unit) + 1 if unit else 0)


def tables(rows: Iterable["RowBase"]) -> Iterator["RowTable | RowBase"]:
    """Tables of rows, and rows that are in none, in the order of what comes first in each."""
    lines: dict[object, list[RowLine]] = {}
    found: list[tuple[object, RowBase]] = []
    for grid in grids(rows):
        names = _columns([row.name.split("-") for row in grid])
        key: object = grid[0].name
        if len(grid) > 1:
            (place,) = _varying(names)
            line = RowLine(tuple(grid), place)
            key = _kind(line)
            lines.setdefault(key, []).append(line)
        found.append((key, grid[0]))
    for key, row in found:
        if key == row.name:
            _join(row, lines)
    joined = {row.name for its in lines.values() for line in its for row in line.rows}
    for key, row in found:
        if key in lines:
            yield RowTable(tuple(lines.pop(key)))
        elif row.name not in joined:
            yield row


def _kind(line: RowLine) -> object:
    """What the lines of a table have in common: the unit of what differs, or how names begin."""
    units = {found[2] for value in line.values if (found := _SIZE.fullmatch(value))}
    if not units:
        return "words", line.name().split("-")[0]
    if units <= {"KiB", "MiB", "GiB"}:
        return "iB"
    if units <= {*_UNITS}:
        return "size"
    after = line.rows[0].name.split("-")[line.place + 1 :][:1]
    return min(units), *(word.removesuffix("s") for word in after)


def _join(row: "RowBase", lines: dict[object, list[RowLine]]) -> None:
    """Give a row that differs from all others a line of a table that has a column for it."""
    parts = row.name.split("-")
    for its in lines.values():
        values = {value for line in its for value in line.values}
        for place, part in enumerate(parts):
            if part in values and any(line.rows[0].name.split("-")[0] == parts[0] for line in its):
                its.append(RowLine((row,), place))
                return


def grids(rows: Iterable["RowBase"]) -> Iterator[list["RowBase"]]:
    """Group rows that differ in one number of their names, and in few parts of their titles."""
    grid: list[RowBase] = []
    for row in rows:
        if grid and not _is_grid([*grid, row]):
            yield grid
            grid = []
        grid.append(row)
    if grid:
        yield grid


def _is_grid(rows: Sequence["RowBase"]) -> bool:
    if len({(row.on_request, row.stage) for row in rows}) > 1:
        return False
    columns = _columns([row.name.split("-") for row in rows])
    titles = _columns([row.title().split(", ") for row in rows])
    varying = _varying(columns)
    if len(varying) != 1:
        return False
    names = columns[varying[0]]
    if all(map(_NUMBER.search, names)):
        return len(_varying(titles)) <= MOST_VARYING
    return len({_form(row.title(), name) for row, name in zip(rows, names, strict=True)}) == 1


def _form(title: str, name: str) -> str | None:
    """A title without its numbers and this name; what no other has, if it lacks the name."""
    words = title.split()
    return _NUMBERS.sub("#", title.replace(name, EACH)) if f"{name}," in words else name


def _is_of_words(rows: Sequence["RowBase"]) -> bool:
    """Whether what differs in the names of several rows is a word, which the titles have, too."""
    columns = _columns([row.name.split("-") for row in rows])
    return any(not all(map(_NUMBER.search, columns[place])) for place in _varying(columns))


def _columns(parts: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The parts by place, or all of them as one place if not all have as many."""
    if len({len(one) for one in parts}) > 1:
        return [tuple("-".join(one) for one in parts), tuple(str(len(one)) for one in parts)]
    return list(zip(*parts, strict=True))


def _varying(columns: Iterable[Sequence[str]]) -> list[int]:
    return [place for place, its in enumerate(columns) if len(set(its)) > 1]


def title_of(grid: Sequence["RowBase"]) -> str:
    """The title of a row, or those of several from the first to the last."""
    return _title(grid) + ("; only with --row" if grid[0].on_request else "")


def _title(grid: Sequence["RowBase"]) -> str:
    if _is_of_words(grid):
        names = _columns([row.name.split("-") for row in grid])
        (its,) = (names[place] for place in _varying(names))
        said = (row.title().replace(name, EACH) for row, name in zip(grid, its, strict=True))
        return together([*said])
    parts = _columns([row.title().split(", ") for row in grid])
    return ", ".join(its[0] if len(set(its)) == 1 else _from_to(its[0], its[-1]) for its in parts)


def _from_to(first: str, last: str) -> str:
    """From "folios of 4 KiB" and "folios of 2 MiB" make "folios of 4 KiB to 2 MiB"."""
    one, other = first.split(), last.split()
    begin = _nr_same(one, other)
    end = _nr_same(one[begin:][::-1], other[begin:][::-1])
    middles = (" ".join(its[begin : len(its) - end]) for its in (one, other))
    return " ".join([*one[:begin], " to ".join(middles), *one[len(one) - end :]])


def _nr_same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words they begin with are the same."""
    both = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda words: words[0] == words[1], both))
