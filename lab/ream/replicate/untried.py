# SPDX-License-Identifier: GPL-2.0-only
"""Explains why a published line could not be tried here, and which row tries it elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ream.experiment import Row, Stage
from ream.published import Printed, Table
from ream.record.machine import Machine
from ream.replicate.claims import Claim, Fit, takes
from ream.replicate.plan import BEST_FIRST
from ream.report.summary import ALONE
from ream.values import Scalar


@dataclass(frozen=True)
class Untried:
    """The reason why a line was not tried."""

    reason: str
    row: str | None = None
    """The row that would try it on another machine; None if there is none."""


def untried(
    table: Table,
    claim: Claim,
    its: Sequence[Fit],
    *,
    machine: Machine,
    absent: Mapping[Stage, str],
    failed: Mapping[Stage, str],
    told: Mapping[str, str],
) -> Untried:
    """The reason of the row that came nearest: one that was run, or else that of the best stage.

    absent: for each stage, what its rows lack here. failed: for each stage, why its run left no
    record. told: for each row, why its record has no verdict.
    """
    there, rows = claim.printed.threads, _rows_for(table, claim, its)
    able = [row for row in rows if row.no_verdict is None and row.stage != "live"]
    lacks = {row.name: tuple(_lacks(row, there, machine, absent)) for row in able}

    def far(row: Row) -> tuple[bool, bool, int]:
        ran = not lacks.get(row.name) and (row.name in told or row.stage in failed)
        return not ran, row.threads != there, BEST_FIRST.index(row.stage)

    row = min(able or rows, key=far, default=None)
    if row is None:
        return Untried(_no_row(table, claim))
    if row not in able:
        return Untried(row.no_verdict or ALONE, row.name)
    if lacks[row.name]:
        return Untried("; ".join(lacks[row.name]), row.name)
    if row.stage in failed:
        said = f"its run in the {row.stage} stage ended without a record: {failed[row.stage]}"
        told = {row.name: said}
    if row.name in told:
        return Untried(told[row.name], row.name)
    if row.threads is None and there is not None:
        cpus = machine.nr_usable_cpus
        return Untried(
            f"another number of threads than {there} is what {cpus} CPUs come to", row.name
        )
    where = ", and it takes guests under KVM" if row.stage == "vm" else ""
    return Untried(f"no record given has it{where}", row.name)


def _rows_for(table: Table, claim: Claim, its: Sequence[Fit]) -> tuple[Row, ...]:
    """Rows that are compared with the line, with the same number of threads or share of CPUs."""
    there, share = claim.printed.threads, claim.line.params.get("node_pct")
    return tuple(
        fit.row
        for fit in its
        if takes(table, fit.ref, claim, fit.row.threads)
        and (
            fit.row.threads == there
            if fit.row.threads and there
            else _share(fit.row) in (None, share)
        )
    )


def _share(row: Row) -> Scalar | None:
    return row.params().get("node_pct")


def _lacks(
    row: Row, threads: int | None, machine: Machine, absent: Mapping[Stage, str]
) -> Iterator[str]:
    cpus = max(row.cpus_wanted or 1, threads or 1)
    if cpus > machine.nr_usable_cpus:
        yield f"{cpus} CPUs are needed, {machine.nr_usable_cpus} are here"
    if row.stage in absent:
        yield absent[row.stage]


def _no_row(table: Table, claim: Claim) -> str:
    if claim.printed.threads is None and table.is_of_a_machine:
        there = "CPUs" if table.cpus is None else f"the {table.cpus} CPUs"
        return (
            f"it is not said how many of {there} there worked on a node: rows of ours have a number"
        )
    what = f"{claim.value} of " if claim.value else ""
    return f"no row of ours measures {what}{line_words(claim.printed)}"


def line_words(printed: Printed) -> str:
    """A line's parameters in a few words."""
    values = {name: printed.param(name) for name in printed.line.params}
    return ", ".join(
        value if name in ("config", "when", "mode", "machine") else f"{name}={value}"
        for name, value in values.items()
    )
