# SPDX-License-Identifier: GPL-2.0-only
"""What every layout has: a name, what it looks like, and what it takes from the lines of a mail."""

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
    """A table without what its mail does not say."""

    unit: str
    better: str
    method: str
    """What the layout says of how it was measured."""
    rows: tuple[TableRow, ...]
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    """Other fields of the table that the text says: machine, cpus, node_gib, base."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """By field, what is known from the layout and not from the text."""
    lines: frozenset[int] = frozenset()
    """Numbers of the lines that it was read from."""
    lacks: str | None = None
    """What is missing, if none of the lines that were not understood has it."""
    skipped: Mapping[int, str] = field(default_factory=dict)
    """By number, lines between its own that it has no use for, and why."""


@dataclass(frozen=True)
class TableFamily:
    """One family of printed tables."""

    name: str
    looks_like: str
    starts: Callable[[Sequence[MailLine]], Sequence[int]]
    """Where in these lines its tables begin."""
    read: Callable[[Sequence[MailLine], int, int], Parsed | None]
    """The table that begins at the first place and ends before the second.

    None: this is not its table. Raises BadUsage if it is, but is damaged."""

    @property
    def experiment(self) -> str:
        """The one that names it as a form of its tables."""
        return next(name for name, layouts in _named() if self.name in layouts)


@cache
def _named() -> tuple[tuple[str, Sequence[str]], ...]:
    """By experiment, the layouts that its file names."""
    return tuple((name, read_toml(file_of(name)).get("layouts", ())) for name in names())


def places(lines: Sequence[MailLine], is_head: Callable[[MailLine], bool]) -> tuple[int, ...]:
    """Of the lines that are heads of tables."""
    return tuple(place for place, line in enumerate(lines) if is_head(line))


def distinct(rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    """The rows; raises BadUsage if two of them are about the same thing."""
    seen: list[Mapping[str, Scalar]] = []
    for row in rows:
        if row.params in seen:
            said = ", ".join(f"{name} = {value}" for name, value in row.params.items())
            raise BadUsage(f"the line of {said} is there twice; paste one table at a time")
        seen.append(row.params)
    return tuple(rows)
