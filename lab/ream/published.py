# SPDX-License-Identifier: GPL-2.0-only
"""Tables others published, as experiments/*/published.toml keeps them: facts with their sources."""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from ream.errors import BadUsage
from ream.experiment.shape import BEFORE, PUBLISHED, PublishedRef, RowBase
from ream.folders import table_files
from ream.nearest import hint
from ream.values import Name, Scalar, Scalars, Sealed, Texts, Tuple, Value, faults, read_toml

RATIO_UNIT = "ratio published/before"
"""The unit of a table whose source printed only the ratio."""

AS_NAMED = "as named"
"""The unit of a table of several quantities: each has its own in its name, as wall_ms."""

NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
"""Nanoseconds of the units of time that tables have."""

Figure = (
    Annotated[int, Field(gt=-(1 << 63), lt=1 << 63)] | Annotated[float, Field(gt=-1e99, lt=1e99)]
)
"""A printed number: wider than any, narrow enough that what is made of two of them is finite."""

_SUFFIXES = {**{unit: unit for unit in NS}, "pct": "%"}
_WORDS = ("higher", "lower")

LEAST = 1e-99
"""What is smaller, or negative, makes no ratio."""


class TableRow(Value):
    """One printed line: what was varied, what was measured, and its spread where printed."""

    params: Scalars
    values: Sealed[str, Figure]
    sd: Sealed[str, Figure] = Field(default={}, validate_default=True)


@dataclass(frozen=True)
class Printed:
    """Two values of a table, in one unit, as a row of ours is compared with; None: not printed."""

    line: TableRow
    """The published one's; the other may come from another line."""
    unit: str
    better: str
    """higher or lower, of the two values."""
    before: float | None
    published: float | None
    before_sd: float | None
    published_sd: float | None
    ratio: float | None
    """published/before of times: of rates, which are better when higher, it is turned over."""
    inferred: tuple[str, ...] = ()
    """Parameters of the line that its source does not say: they follow from what it says."""

    @property
    def threads(self) -> int | None:
        return _threads(self.line)

    @property
    def threads_there(self) -> str:
        """The threads in words, as "1 thread there" or "48 threads (inferred) there"."""
        words = f"{self.threads} thread{'s' if self.threads != 1 else ''}"
        return f"{words}{' (inferred)' if 'threads' in self.inferred else ''} there"

    def param(self, name: str) -> str:
        """The value of a parameter of the line, in words."""
        return f"{self.line.params[name]}{' (inferred)' if name in self.inferred else ''}"


class Table(Value):
    """cpus: of the machine. node_gib: memory of a node, where that is what was initialised.

    nr_huge: huge pages that each line is about. inferred: parameters of its lines that were not
    printed, but follow from what was. architecture: of the machine, such as arm64, where its lines
    say nothing of another one.
    """

    id: Name
    experiment: Name
    title: str
    author: str
    machine: str
    method: str
    unit: str
    better: str
    rows: Tuple[TableRow]
    date: dt.date | None = None
    commit: str | None = None
    message_id: str | None = None
    base: str | None = None
    approximate: bool = False
    claims: str | None = None
    cpus: int | None = Field(default=None, ge=1, lt=1 << 31)
    architecture: str | None = None
    nr_huge: int | None = Field(default=None, ge=1, lt=1 << 31)
    node_gib: int | None = Field(default=None, ge=1, lt=1 << 31)
    inferred: Texts = ()

    def row(self, params: Mapping[str, Scalar]) -> TableRow:
        """The one line whose parameters include all of `params`.

        Raises BadUsage if there is none or more than one: a comparison must name its line.
        """
        found = self._rows(params)
        if len(found) != 1:
            raise self._bad(f"{len(found)} rows have {_words(params)}, not one")
        return found[0]

    def _rows(self, params: Mapping[str, Scalar]) -> list[TableRow]:
        return [row for row in self.rows if params.items() <= row.params.items()]

    def _bad(self, said: str) -> BadUsage:
        return BadUsage(f"published table {self.id}: {said}")

    @property
    def is_of_a_machine(self) -> bool:
        """Whether it is about all of a machine: its CPUs, and the memory of its nodes."""
        return self.cpus is not None or self.node_gib is not None

    @property
    def values_are_absolute(self) -> bool:
        """Whether the values are measurements, not ratios already."""
        return self.unit != RATIO_UNIT

    def unit_of(self, value: str | None) -> str:
        """Return the unit of a value of that name; None: the unit of `before` and `published`."""
        if self.unit != AS_NAMED or value is None:
            return self.unit
        return self.unit_of_name(value)

    @staticmethod
    def unit_of_name(value: str) -> str:
        """The unit that a quantity's name ends in, as wall_ms; else the name itself."""
        return _SUFFIXES.get(value.rpartition("_")[2], value)

    def better_of(self, value: str | None) -> str:
        """Which of two values of that name is the better one: "higher" or "lower".

        `better` has one of these words for all values, or says the names after each word, as in
        "lower wall_ms and sys_pct, higher hog_iterations". Raises BadUsage if it does neither,
        or not of this value: a ratio would be a guess.
        """
        if self.better in _WORDS:
            return self.better
        for clause in self.better.split(","):
            words = clause.split()
            if words and words[0] in _WORDS and value in {*words[1:]} - {"and"}:
                return words[0]
        said = f" of {value}" if value else ""
        raise self._bad(f'better is neither "higher" nor "lower"{said} (it is {self.better!r})')

    def printed(self, ref: PublishedRef, threads: int | None = None) -> Printed:
        """What `ref` names, for a run of ours that had so many threads; None: as many as it had.

        Raises BadUsage if a line is not there, or has no value of the name that `ref` gives.
        """
        line = self._line(ref, threads)
        base = line if ref.before is None else self.row(ref.before)
        before, published = ref.value or BEFORE, ref.value or PUBLISHED
        if ref.value is not None:
            for one in (base, line):
                if one.values.get(ref.value, 0) <= 0:
                    raise self._bad(f"the row of {_words(one.params)} has no {ref.value} above 0")
        pair = base.values.get(before), line.values.get(published)
        better = self.better_of(ref.value)
        ratio = _ratio(*(pair[::-1] if better == "higher" else pair))
        absolute = self.values_are_absolute
        return Printed(
            line=line,
            unit=self.unit_of(ref.value),
            better=better,
            before=pair[0] if absolute else None,
            published=pair[1] if absolute else None,
            before_sd=base.sd.get(before) if absolute else None,
            published_sd=line.sd.get(published) if absolute else None,
            ratio=ratio if absolute else _ratio(1, pair[1]),
            inferred=self.inferred,
        )

    def _line(self, ref: PublishedRef, threads: int | None) -> TableRow:
        """The line of the published kernel; of equally near ones, that with fewer threads."""
        if ref.nearest is None:
            return self.row(ref.params)
        base = None if ref.before is None else self.row(ref.before)
        by_threads = {
            number: row
            for row in self._rows(ref.params)
            if row != base
            and row.values.get(ref.value or PUBLISHED, 0) > 0
            and (number := _threads(row)) is not None
        }
        if not by_threads:
            said = f"no row of {_words(ref.params)} has threads and {ref.value or PUBLISHED}"
            raise self._bad(said)
        wanted = max(by_threads) if threads is None else threads
        return by_threads[min(by_threads, key=lambda number: (abs(number - wanted), number))]


def _ratio(before: float | None, published: float | None) -> float | None:
    if before is None or published is None or min(before, published) < LEAST:
        return None
    return published / before


def _threads(row: TableRow) -> int | None:
    number = row.params.get("threads")
    return number if isinstance(number, int) and number > 0 else None


def _words(params: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items()) or "any parameters"


class _File(Value):
    table: Tuple[Table]


def load_file(path: Path) -> tuple[Table, ...]:
    """The tables of one file; raises BadUsage with every fault of it."""
    try:
        return _File.model_validate(read_toml(path)).table
    except ValidationError as cause:
        raise faults(str(path), cause) from cause


def load_tables(*more: Path) -> tuple[Table, ...]:
    """Every table of every experiment of this checkout, and of the files `more` that there are,
    which may have others for some of these.

    Raises BadUsage with the faults of the first faulty file, or if two tables share an id.
    """
    ours = table_files()
    tables = [table for path in ours for table in load_file(path)]
    for path in (path for path in more if path.is_file() and path not in ours):
        own = load_file(path)
        # A copy of one of ours stands for it.
        replaced = {table.id for table in own}
        tables = [*(table for table in tables if table.id not in replaced), *own]
    ids = [table.id for table in tables]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise BadUsage(f"published tables: more than one table is called {', '.join(twice)}")
    return tuple(tables)


def check_references(rows: Iterable[RowBase], tables: Iterable[Table]) -> None:
    """Raise BadUsage with every row whose published table or line is not there, before it runs."""
    tables, missing = tuple(tables), []
    for row in rows:
        for ref in row.published:
            try:
                lookup(tables, ref.id).printed(ref)
            except BadUsage as cause:
                missing.append(f"{row.name}: {cause}")
    if missing:
        raise BadUsage("\n".join(missing))


def lookup(tables: Iterable[Table], table_id: str) -> Table:
    """The table of that id; raises BadUsage naming one that is near."""
    by_id = {table.id: table for table in tables}
    if table_id not in by_id:
        raise BadUsage(
            f"no published table {table_id}{hint(table_id, by_id)}; `ream list EXPERIMENT` shows"
            " those of an experiment"
        )
    return by_id[table_id]
