# SPDX-License-Identifier: GPL-2.0-only
"""Implements `ream run --cell`: the request of a cell, if this checkout measures the same."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from ream import __version__
from ream.compare import facts
from ream.compare.alike import Facts, Named, SeriesIds, Thing, check
from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.experiment import BEFORE, IMPLIED, Experiment, Row, named
from ream.fleet.cell import Cell, SeriesWanted, TreeWanted, read_cell, read_text
from ream.kernel.base import base_named
from ream.kernel.cache import Step
from ream.kernel.source import Wanted, base_of, cached_tree, fetch_tree
from ream.paths import cache_dir, data_dir
from ream.record.archive import paths_in
from ream.record.identity import machine_id
from ream.record.partial import Interrupted, interrupted, read_plan
from ream.record.parts import cell_of, part
from ream.record.record import Record, is_record
from ream.session.benchmark import benchmark_id
from ream.session.plan import resumed_request
from ream.session.request import GuestOptions, Request
from ream.values import faults
from ream.variants import Variant


def asked(cell: str, *, output: Path | None, step: Step, dry_run: bool) -> Record | Request:
    """The request for a cell; if this machine has measured it already, its record.

    An interrupted run of the same cell on this machine is resumed. cell: a file with its line, or
    `-` for standard input. output: the directory of records; None is the default one. Raises
    BadUsage, with both values, if this checkout would measure something else than was planned.
    Raises CannotRunHere if another process is measuring it.
    """
    wanted = _read(cell)
    runs = output if output is not None else data_dir() / "runs"
    if (record := done(wanted, runs, machine_id())) is not None and not dry_run:
        step(f"cell {wanted.id}: done on this machine already: {record.path}")
        return record
    request = request_of(wanted, runs=runs, cache=cache_dir())
    request = replace(request, command=shlex.join(("ream", "run", "--cell", cell)))
    check_tree(wanted, request, step=step, fetch=not dry_run)
    if (begun := _begun(wanted, runs, machine_id())) is not None and not dry_run:
        step(f"cell {wanted.id}: going on with {begun.run}")
        request = resumed_request(begun.path, cache=request.cache)
    return request


def request_of(cell: Cell, *, runs: Path, cache: Path) -> Request:
    """The run that a cell asks for.

    Raises BadUsage with every difference between this checkout and the planned one.
    """
    whole = named(cell.experiment)
    _check(cell, _planned(cell), _here(cell, whole))
    return Request(
        experiment=_experiment(cell, whole),
        stage=cell.stage,
        variants=tuple(
            Variant(name, tuple(one.series() for one in series))
            for name, series in cell.variants.items()
        ),
        tree=_source(cell.tree),
        threads=cell.threads,
        seed=cell.seed,
        runs=runs,
        cache=cache,
        command="",
        guest=cell.guest or GuestOptions(),
        cell=cell.id,
    )


def _source(tree: TreeWanted | None) -> Wanted:
    if tree is None or (tree.path is None and tree.base is None):
        return None
    return Path(tree.path) if tree.path is not None else base_named(str(tree.base))


def done(cell: Cell, runs: Path, machine: str | None) -> Record | None:
    """The record that a machine made of this cell below `runs`; None without one.

    A machine without an id cannot be told from others, so it has no such record.
    """
    if machine is None:
        return None
    for path in filter(is_record, paths_in(runs)):
        try:
            record = Record.load(str(path), runs)
        except ReamError:  # a damaged record is nobody's; `ream merge` names it
            continue
        if cell_of(record) == cell.id and part(record.receipt, "machine").get("id") == machine:
            return record
    return None


def _begun(cell: Cell, runs: Path, machine: str | None) -> Interrupted | None:
    """An interrupted run of this cell on this machine; raises CannotRunHere if one is running."""
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


def check_tree(cell: Cell, request: Request, *, step: Step, fetch: bool) -> None:
    """Raise BadUsage if the kernel source here is not the planned one.

    fetch: whether to unpack it if the cache has none, as the run would; otherwise it stays
    unchecked.
    """
    if cell.tree is None or cell.tree.key is None:
        return
    if fetch:
        tree = fetch_tree(request.tree, cache=request.cache, step=step)
    else:
        base = base_of(request.tree)
        found = None if base is None else cached_tree(request.cache, base)
        if found is None:
            return
        tree = found
    source = Thing("tree")
    planned = facts.tree(cell.tree.version, cell.tree.key)
    _check(cell, {source: planned}, {source: facts.tree(tree.version, tree.key)})


def _read(cell: str) -> Cell:
    if cell == "-":
        text, where = sys.stdin.read(), "standard input"
    else:
        text, where = read_text(Path(cell)), cell
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) != 1:
        raise BadUsage(f"{where}: {len(lines)} lines, where one cell is one line")
    return read_cell(lines[0], where=where)


def _planned(cell: Cell) -> Facts:
    """The properties of a cell that its numbers depend on."""
    return {
        Thing("version of ream"): cell.ream,
        Thing("benchmark"): cell.benchmark,
        **{
            Thing("series", name): SeriesIds(tuple((one.id, None) for one in series))
            for name, series in cell.variants.items()
        },
    }


def _here(cell: Cell, whole: Experiment) -> Facts:
    """The same properties of this checkout."""
    return {
        Thing("version of ream"): __version__,
        Thing("benchmark"): benchmark_id(whole, cell.stage),
        **dict(_series(name, series) for name, series in cell.variants.items()),
    }


def _series(name: str, series: Sequence[SeriesWanted]) -> tuple[Thing, object]:
    try:
        ((thing, ids),) = facts.series(name, [one.series() for one in series]).items()
    except BadUsage as cause:  # a folder that this checkout has not
        return Thing("series", name), Named(None, str(cause))
    return thing, ids


def _experiment(cell: Cell, whole: Experiment) -> Experiment:
    """The cell's experiment with its row alone; raises BadUsage if the row is not as planned."""
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
    name = cell.row_name
    _check(cell, facts.params(name, cell.params), facts.params(name, row.params()))
    return row


def _check(cell: Cell, planned: Facts, here: Facts) -> None:
    head = f"cell {cell.id} is not what this checkout would measure"
    check("cell", planned, here, sides=("in the plan", "here"), head=head)
