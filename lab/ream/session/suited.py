# SPDX-License-Identifier: GPL-2.0-only
"""Selects the rows of a native run that this machine can run, and the program for each."""

from collections.abc import Iterable

from ream.count.emulator import CPUS
from ream.errors import CannotRunHere
from ream.experiment import Row
from ream.kernel.setup import refusals, unhosted
from ream.session.request import Request
from ream.stage.hosted import Hosted, programs_of
from ream.stage.native import Suited
from ream.stage.steps import steps_of


def suited_rows(request: Request) -> Suited:
    """Return the rows that this machine's CPUs can run; raises CannotRunHere if there is none."""
    if steps_of(request.experiment):
        return Suited(request.experiment.rows)
    found = [suited for _, suited in suited_programs(request)]
    as_run = {row.name: row for one in found for row in one.rows}
    whole = Suited(
        rows=tuple(as_run[row.name] for row in request.experiment.rows if row.name in as_run),
        cpus=max(one.cpus for one in found),
        skipped={name: why for one in found for name, why in one.skipped.items()},
        remarks={name: said for one in found for name, said in one.remarks.items()},
        warnings=tuple(said for one in found for said in one.warnings),
    )
    if not whole.rows:
        raise CannotRunHere("; ".join(whole.by_reason()))
    return whole


def suited_programs(request: Request) -> list[tuple[Hosted[Row], Suited]]:
    """Return the programs that have rows to run here, each with these rows."""
    of_program = (
        (its, tuple(row for row in request.experiment.rows if its.runs(row)))
        for its in programs_of(request.experiment)
    )
    return [(its, _suited(its, rows, request)) for its, rows in of_program if rows]


def _suited(its: Hosted[Row], rows: tuple[Row, ...], request: Request) -> Suited:
    """Return a program's rows that can be run; none if it cannot host such kernels."""
    if why := _why_unsuited(its, request):
        return Suited(rows=(), skipped={row.name: why for row in rows})
    return its.suit(rows, request.threads, cpus=None if request.count is None else CPUS)


def _why_unsuited(its: Hosted[Row], request: Request) -> str | None:
    """Return why a program cannot host kernels built as requested; None if it can."""
    asked = request.setup.arch
    if asked not in its.arches:
        return (
            f"--arch {asked}: {its.label or request.experiment.name} has kernels of"
            f" {', '.join(its.arches)} alone: {its.why_not_others}"
        )
    for setup in (request.setup, *(one.setup for one in request.variants if one.setup)):
        for refused in refusals(setup.config, {**unhosted(several=True), **its.unhosted}):
            return f"{setup.name}: {refused}"
        for word in setup.boot:
            return f"{setup.name}: boot {word}: only computers, as those of mm, are told at boot"
    return None


def by_config(rows: Iterable[Row]) -> dict[tuple[str, ...], tuple[Row, ...]]:
    """Group rows by their kernels' options beyond the stage's configuration; none come first."""
    found: dict[tuple[str, ...], tuple[Row, ...]] = {}
    for row in sorted(rows, key=lambda row: bool(row.config)):
        found[row.config] = (*found.get(row.config, ()), row)
    return found
