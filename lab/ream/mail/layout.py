# SPDX-License-Identifier: GPL-2.0-only
"""The interface of layouts: a name, an example, and functions that find and read tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from ream.errors import BadUsage
from ream.folders import file_of, names
from ream.mail.text import MailLine
from ream.published import TableRow
from ream.values import Scalar, read_toml


@dataclass(frozen=True)
class Parsed:
    """A table without the fields that the mail does not contain."""

    unit: str
    better: str
    method: str
    """The method of measurement, as the layout implies it."""
    rows: tuple[TableRow, ...]
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    """Other fields of the table that the text contains: machine, cpus, node_gib, base."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """For each field that the layout implies and the text does not contain, a note on that."""
    lines: frozenset[int] = frozenset()
    """Numbers of the lines that it was read from."""
    lacks: str | None = None
    """A part of the table that is missing, if no line that was not understood can contain it."""
    skipped: Mapping[int, str] = field(default_factory=dict)
    """Lines between its own that are not used, by number, with the reason."""


@dataclass(frozen=True)
class TableFamily:
    """One layout of printed tables."""

    name: str
    looks_like: str
    starts: Callable[[Sequence[MailLine]], Sequence[int]]
    """Returns the places in these lines where its tables begin."""
    read: Callable[[Sequence[MailLine], int, int], Parsed | None]
    """Reads the table that begins at the first place and ends before the second. It returns None
    for a table of another layout, and raises BadUsage for a damaged table."""

    @property
    def experiment(self) -> str:
        """The experiment whose file names this layout."""
        return next(name for name, layouts in _named() if self.name in layouts)


@cache
def _named() -> tuple[tuple[str, Sequence[str]], ...]:
    """The layouts that each experiment's file names."""
    return tuple((name, read_toml(file_of(name)).get("layouts", ())) for name in names())


def places(lines: Sequence[MailLine], is_head: Callable[[MailLine], bool]) -> tuple[int, ...]:
    """The places of lines that are heads of tables."""
    return tuple(place for place, line in enumerate(lines) if is_head(line))


def distinct(rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    """The rows; raises BadUsage if two of them have the same parameters."""
    seen: list[Mapping[str, Scalar]] = []
    for row in rows:
        if row.params in seen:
            said = ", ".join(f"{name} = {value}" for name, value in row.params.items())
            raise BadUsage(f"the line of {said} is there twice; paste one table at a time")
        seen.append(row.params)
    return tuple(rows)
