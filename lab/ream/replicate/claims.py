# SPDX-License-Identifier: GPL-2.0-only
"""Splits a published table into claims, and finds the rows that measure the same."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from ream.errors import BadUsage
from ream.experiment import BEFORE, PAGE_BYTES, PUBLISHED, Experiment, PublishedRef, Row
from ream.measure.verdict import claims_effect
from ream.published import AS_NAMED, NS, RATIO_UNIT, Printed, Table, TableRow
from ream.values import Scalar

WHERE = "machine"
"""The parameter of a line that states where it was measured rather than what."""

NEARLY = 1.25
"""The largest factor between the memory of a guest and that of the published node."""

_COUNTED = ("channels", "threads", "node_pct", "entry")
"""Parameters that are 0 in the line of the kernel without the technique."""


@dataclass(frozen=True)
class Claim:
    """One quantity of one printed line."""

    line: TableRow
    value: str | None
    """The table's name for the quantity; None for `before` and `published`."""
    printed: Printed
    is_base: bool
    """Whether this is only the reference that other lines are compared with."""

    @property
    def substantial(self) -> bool:
        """Whether the printed effect is 10 % or more, or unknown."""
        return self.printed.ratio is None or claims_effect(self.printed.ratio)

    @property
    def of_time(self) -> bool:
        """Whether the quantity is a time, or a rate or a ratio derived from times."""
        return self.printed.unit in (*NS, RATIO_UNIT) or "/s" in self.printed.unit


def claims(table: Table) -> tuple[Claim, ...]:
    """Every quantity of every line of a table, in order; no line is left out."""
    return tuple(claim for line in table.rows for claim in _of_line(table, line))


def _of_line(table: Table, line: TableRow) -> Iterator[Claim]:
    alone = {BEFORE, PUBLISHED} <= line.values.keys()
    base = line if alone else base_of(table, line)
    for value in _quantities(table, line):
        is_base = PUBLISHED not in line.values if value is None else base is line
        try:
            printed = table.printed(
                PublishedRef(
                    id=table.id,
                    params=line.params,
                    before=None if alone or base is None else base.params,
                    value=value,
                )
            )
        except (BadUsage, ValidationError):  # there is nothing to compare it with
            printed = _without_ratio(table, line, value)
        yield Claim(line, value, printed, is_base)


def _without_ratio(table: Table, line: TableRow, value: str | None) -> Printed:
    name = value or PUBLISHED
    return Printed(
        line=line,
        unit=table.unit_of(value),
        better="lower",
        before=None,
        published=line.values.get(name),
        before_sd=None,
        published_sd=line.sd.get(name),
        ratio=None,
        inferred=table.inferred,
    )


def _quantities(table: Table, line: TableRow) -> tuple[str | None, ...]:
    """The quantities of a line that are claims.

    They are `before` and `published`, or else every value that is a time or whose better direction
    is known: others, such as a change in per cent, only repeat these. Without any, it is (None,).
    """
    if {BEFORE, PUBLISHED} & line.values.keys():
        return (None,)
    named = tuple(
        name
        for name, value in line.values.items()
        if value > 0
        and (table.unit == AS_NAMED or table.unit_of_name(name) in NS)
        and _has_better(table, name)
    )
    return named or (None,)


def _has_better(table: Table, value: str) -> bool:
    try:
        table.better_of(value)
    except BadUsage:
        return False
    return True


def base_of(table: Table, line: TableRow) -> TableRow | None:
    """The line of the kernel without the technique for `line`, possibly itself."""
    wanted = {name: _without(name, value) for name, value in line.params.items()}
    return next((other for other in table.rows if other.params == wanted), None)


def _without(name: str, value: Scalar) -> Scalar:
    if name in _COUNTED:
        return 0
    if name == "mode" and isinstance(value, str):
        return "-".join("baseline" if word == "dma" else word for word in value.split("-"))
    return value


@dataclass(frozen=True)
class Fit:
    """A row, and its reference to a published table."""

    row: Row
    ref: PublishedRef
    """The reference to the table in question, possibly derived from one to another table."""
    own: PublishedRef
    """The reference as the experiment declares it."""


def fits(table: Table, experiments: Iterable[Experiment]) -> tuple[Fit, ...]:
    """The rows that measure what a table contains, in the order of the experiments.

    Rows name the tables that they are compared with. A table that no row names uses the rows of
    another table of the same experiment whose parameters and quantity are the same. So a second
    version of a series, or a table from a mail, has rows at once.
    """
    found = tuple(
        Fit(row, ref, ref)
        for experiment in experiments
        if experiment.name == table.experiment
        for row in experiment.rows
        if row.arch is None  # of another architecture nothing is timed
        for ref in row.published
    )
    own = tuple(fit for fit in found if fit.ref.id == table.id)
    if own:
        return own
    alike = (
        Fit(fit.row, fit.ref.model_copy(update={"id": table.id}), fit.own)
        for fit in found
        if _same_operation(table, fit.row)
        and _same_memory(table, fit.row)
        and _suits(table, fit.ref)
    )
    # A row that names six tables of one form is still one row.
    return tuple({(f.row.name, f.ref.value, *f.ref.params.items()): f for f in alike}.values())


def _same_operation(table: Table, row: Row) -> bool:
    """Whether table and row are both about unmapping, or neither is.

    Tables of fork and of munmap have the same parameters, so their texts decide.
    """
    operation = row.params().get("operation")
    said = f"{table.id} {table.title} {table.method}".lower()
    return not isinstance(operation, str) or ("unmap" in operation) == ("unmap" in said)


def _same_memory(table: Table, row: Row) -> bool:
    """Whether the row's memory size suits the table, if the row is about all memory."""
    nr_pages = row.params().get("nr_pages")
    if not row.is_of_all_memory:
        return True
    if table.node_gib is None or not isinstance(nr_pages, int):
        return False
    return abs(math.log(nr_pages * PAGE_BYTES / (table.node_gib << 30))) < math.log(NEARLY)


def _suits(table: Table, ref: PublishedRef) -> bool:
    return any(measures(ref, claim) for claim in claims(table))


def measures(ref: PublishedRef, claim: Claim) -> bool:
    """Whether a row with this reference measures this claim, with any number of threads."""
    if ref.value != claim.value or claim.is_base:
        return False
    if ref.nearest is not None and "threads" not in claim.line.params:
        return False
    params = claim.line.params
    return all(params.get(name) == wanted for name, wanted in ref.params.items() if name != WHERE)


def takes(table: Table, ref: PublishedRef, claim: Claim, threads: int | None) -> bool:
    """Whether a row with this reference is compared with the line of this claim.

    threads: of the row; None if the machine decides, which accepts any number.
    """
    if not measures(ref, claim):
        return False
    if ref.nearest is None or threads is None:
        return True
    try:
        return table.printed(ref, threads).line == claim.line
    except BadUsage:  # a table without the line of the kernel before
        return threads == claim.printed.threads
