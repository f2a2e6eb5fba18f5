# SPDX-License-Identifier: GPL-2.0-only
"""`ream run --cell`: what a cell asks for, if this checkout would measure the same."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from ream import __version__
from ream.cells.cell import Cell, read_cell, read_text
from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.experiment import BEFORE, IMPLIED, Experiment, Row, named
from ream.history.like import part
from ream.kernel.cache import Step
from ream.kernel.source import cached_tree, fetch_tree
from ream.paths import cache_dir, data_dir
from ream.progress import Reporter
from ream.record.identity import machine_id
from ream.record.partial import Interrupted, interrupted, read_plan
from ream.record.record import RUN, Record
from ream.report import table
from ream.report.contract import Summary
from ream.session.benchmark import benchmark_id
from ream.session.plan import resumed_request
from ream.session.request import GuestOptions, Request
from ream.values import faults
from ream.variants import Variant


def run_cell(
    cell: str, *, output: Path | None, as_json: bool, dry_run: bool, quiet: bool = False
) -> None:
    """Measure a cell here, unless its record is there already; print what a run prints.

    What an interrupted run of the same cell has measured here is gone on with.
    cell: a file with its line, or `-`, standard input. output: where records are kept.
    Raises BadUsage, naming both, if this checkout would measure something else than was planned;
    CannotRunHere if another process is measuring it; and what a run raises.
    """
    from ream.cli.run import run_request  # noqa: PLC0415 # the command line reads us in turn

    wanted = _read(cell)
    runs = output if output is not None else data_dir() / "runs"
    reporter = Reporter(quiet=quiet)
    if (record := done(wanted, runs, machine_id())) is not None and not dry_run:
        reporter.step(f"cell {wanted.id}: done on this machine already: {record.path}")
        _print(record, as_json=as_json)
        return
    request = request_of(wanted, runs=runs, cache=cache_dir())
    request = replace(request, command=shlex.join(("ream", "run", "--cell", cell)))
    check_tree(wanted, request, step=reporter.step, fetch=not dry_run)
    if (begun := _begun(wanted, runs, machine_id())) is not None and not dry_run:
        reporter.step(f"cell {wanted.id}: going on with {begun.run}")
        request = resumed_request(begun.path, cache=request.cache)
    run_request(request, as_json=as_json, dry_run=dry_run, quiet=quiet)


def request_of(cell: Cell, *, runs: Path, cache: Path) -> Request:
    """The run that a cell asks for.

    Raises BadUsage with everything in which this checkout is not the planned one.
    """
    whole = named(cell.experiment)
    if unlike := [*_faults(cell, whole)]:
        raise BadUsage(_unlike(cell, unlike))
    variants = _variants(cell)
    return Request(
        experiment=_experiment(cell, whole),
        stage=cell.stage,
        variants=variants,
        tree=None if cell.tree is None or cell.tree.path is None else Path(cell.tree.path),
        threads=cell.threads,
        seed=cell.seed,
        runs=runs,
        cache=cache,
        command="",
        guest=GuestOptions(**({} if cell.guest is None else cell.guest.model_dump())),
        cell=cell.id,
    )


def done(cell: Cell, runs: Path, machine: str | None) -> Record | None:
    """The record that a machine made of this cell, if it is below `runs`; None if there is none.

    A machine without an id cannot be told from others, so what it has done is not known.
    """
    if machine is None:
        return None
    for path in sorted(runs.glob(f"[0-9]*/{RUN}")):
        try:
            record = Record.load(str(path.parent), runs)
        except ReamError:  # a damaged record is nobody's; `ream merge` names it
            continue
        if cell_of(record) == cell.id and part(record.receipt, "machine").get("id") == machine:
            return record
    return None


def _begun(cell: Cell, runs: Path, machine: str | None) -> Interrupted | None:
    """An interrupted run of this cell on this machine; raises CannotRunHere if one goes on."""
    for one in interrupted(runs):
        try:
            plan = read_plan(one.path)
        except BadUsage:  # what cannot be gone on with is begun anew
            continue
        if plan.get("cell") != cell.id or plan.get("machine") != machine:
            continue
        if one.running:
            raise CannotRunHere(
                f"cell {cell.id}: another process measures it here ({one.run}); wait for its end"
            )
        return one
    return None


def cell_of(record: Record) -> str | None:
    """The id of the cell that a record is of; None: of none."""
    found = part(record.receipt, "settings").get("cell")
    return found if isinstance(found, str) else None


def check_tree(cell: Cell, request: Request, *, step: Step, fetch: bool) -> None:
    """Raises BadUsage if the kernel source here is not the planned one.

    fetch: whether to unpack it now if the cache has none, as the run would; else it is not known.
    """
    if cell.tree is None or cell.tree.key is None:
        return
    if fetch:
        tree = fetch_tree(request.tree, cache=request.cache, step=step)
    elif request.tree is not None or (found := cached_tree(request.cache)) is None:
        return
    else:
        tree = found
    if tree.key != cell.tree.key:
        fault = (
            f"the kernel source is {cell.tree.version} ({cell.tree.key[:12]}) in the plan, "
            f"{tree.version} ({tree.key[:12]}) here; `ream run --tree latest` fetches the newest"
        )
        raise BadUsage(_unlike(cell, [fault]))


def _read(cell: str) -> Cell:
    if cell == "-":
        text, where = sys.stdin.read(), "standard input"
    else:
        text, where = read_text(Path(cell)), cell
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) != 1:
        raise BadUsage(f"{where}: {len(lines)} lines, where one cell is one line")
    return read_cell(lines[0], where=where)


def _faults(cell: Cell, whole: Experiment) -> Iterator[str]:
    """What makes numbers of this checkout others than those that were planned."""
    if cell.ream != __version__:
        yield f"ream is {cell.ream} in the plan, {__version__} here"
    if (own := benchmark_id(whole, cell.stage)) != cell.benchmark:
        yield (
            f"the benchmark ({cell.experiment}, {cell.stage} stage) is {cell.benchmark} in the "
            f"plan, {own} here"
        )
    for name, series in cell.variants.items():
        for one in series:
            try:
                one.series()
            except BadUsage as cause:
                yield f"variant {name}: {cause}"


def _variants(cell: Cell) -> tuple[Variant, ...]:
    return tuple(
        Variant(name, tuple(one.series() for one in series))
        for name, series in cell.variants.items()
    )


def _experiment(cell: Cell, whole: Experiment) -> Experiment:
    """The cell's question, asked of its row alone; raises BadUsage if the row is not as planned."""
    row = _row(cell, whole)
    folders = {
        name: tuple(one.folder for one in series if one.folder is not None)
        for name, series in cell.variants.items()
        if name not in IMPLIED or (name == BEFORE and series)
    }
    return whole.model_copy(
        update={
            "question": cell.question,
            "launches": cell.launches,
            "variants": MappingProxyType(folders),
            "rows": (row,),
        }
    )


def _row(cell: Cell, whole: Experiment) -> Row:
    kind: type[Row] = type(whole.rows[0])
    try:
        row = kind.model_validate(dict(cell.row))
    except ValidationError as cause:
        raise faults(f"cell {cell.id}: row", cause) from cause
    if row.stage != cell.stage:
        raise BadUsage(f"cell {cell.id}: row: stage: {row.stage}, in a cell of {cell.stage}")
    if unlike := [*_differing(cell.params, row.params())]:
        raise BadUsage(_unlike(cell, unlike))
    return row


def _differing(planned: Mapping[str, object], here: Mapping[str, object]) -> Iterator[str]:
    for name in dict.fromkeys((*planned, *here)):
        if planned.get(name) != here.get(name):
            yield f"{name} of the row is {planned.get(name)} in the plan, {here.get(name)} here"


def _unlike(cell: Cell, what: list[str]) -> str:
    head = f"cell {cell.id} is not what this checkout would measure"
    return "\n".join(f"{head}: {fault}" for fault in what)


def _print(record: Record, *, as_json: bool) -> None:
    summary = Summary.from_object(record.run, source=str(record.path))
    if as_json:
        print(json.dumps(summary.to_object(), indent=1))
    else:
        sys.stdout.write(table.render(summary))
