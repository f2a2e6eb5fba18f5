# SPDX-License-Identifier: GPL-2.0-only
"""Tables others published, as experiments/published/ keeps them: facts with their sources."""

import datetime as dt
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from ream.errors import BadUsage
from ream.experiment.shape import RowBase
from ream.values import Name, Scalar, Scalars, Sealed, Tuple, Value, faults, read_toml

RATIO_UNIT = "ratio published/before"
"""The unit of a table whose source printed only the ratio."""


class TableRow(Value):
    """One printed line: what was varied, what was measured, and its spread where printed."""

    params: Scalars
    values: Sealed[str, int | float]
    sd: Sealed[str, int | float] = Field(default={}, validate_default=True)


class Table(Value):
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

    def row(self, params: Mapping[str, Scalar]) -> TableRow:
        """The one line whose parameters include all of `params`.

        Raises BadUsage if there is none or more than one: a comparison must name its line.
        """
        found = [row for row in self.rows if params.items() <= row.params.items()]
        if len(found) != 1:
            asked = ", ".join(f"{name}={value}" for name, value in params.items())
            raise BadUsage(f"published table {self.id}: {len(found)} rows have {asked}, not one")
        return found[0]

    @property
    def values_are_absolute(self) -> bool:
        """Whether the values are measurements, not ratios already."""
        return self.unit != RATIO_UNIT

    def ratio(self, row: TableRow) -> float | None:
        """published/before of one line of this table; None if it was not printed."""
        before, published = row.values.get("before"), row.values.get("published")
        if published is None or published <= 0:
            return None
        if not self.values_are_absolute:
            return float(published)
        return published / before if before is not None and before > 0 else None


class _File(Value):
    table: Tuple[Table]


def load_tables(directory: Path) -> tuple[Table, ...]:
    """Every table of every file of a directory, by file name.

    Raises BadUsage with the faults of the first faulty file, or if two tables share an id.
    """
    tables: list[Table] = []
    for path in sorted(directory.glob("*.toml")):
        try:
            tables += _File.model_validate(read_toml(path)).table
        except ValidationError as cause:
            raise faults(str(path), cause) from cause
    ids = [table.id for table in tables]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise BadUsage(f"{directory}: more than one table is called {', '.join(twice)}")
    return tuple(tables)


def check_references(rows: Iterable[RowBase], tables: Iterable[Table]) -> None:
    """Raise BadUsage with every row whose published table or line is not there, before it runs."""
    tables, missing = tuple(tables), []
    for row in rows:
        if row.published is not None:
            try:
                lookup(tables, row.published.id).row(row.published.params)
            except BadUsage as cause:
                missing.append(f"{row.name}: {cause}")
    if missing:
        raise BadUsage("\n".join(missing))


def lookup(tables: Iterable[Table], table_id: str) -> Table:
    """The table of that id; raises BadUsage listing those there are."""
    by_id = {table.id: table for table in tables}
    if table_id not in by_id:
        raise BadUsage(f"no published table {table_id}; there are {', '.join(sorted(by_id))}")
    return by_id[table_id]
