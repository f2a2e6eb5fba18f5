# SPDX-License-Identifier: GPL-2.0-only
"""`ream replicate`: published tables, measured here, with a verdict on each line."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ream.cli import complete
from ream.cli.app import (
    AnswerJsonOption,
    LaunchesOption,
    OutputOption,
    RoundsOption,
    RunsOption,
    SeedOption,
    app,
    chosen_seed,
    runs_dir,
)
from ream.cli.continued import QuietOption
from ream.cli.helped import HelpAllOption
from ream.cli.page import (
    HTML,
    ForceOption,
    PagedSectioned,
    check_force,
    html_option,
    place_of,
    write_sheet,
)
from ream.errors import BadUsage, CannotRunHere, ClaimFails, Inconclusive
from ream.folders import names
from ream.paths import cache_dir

if TYPE_CHECKING:
    from ream.measure.verdict import Word
    from ream.published import Table
    from ream.replicate.outcome import Replication
    from ream.replicate.plan import Plan


@app.command(cls=PagedSectioned)
def replicate(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE",
            help="Published tables (`ream list`), or a .toml file of your own.",
            show_default=False,
            autocompletion=complete.tables,
        ),
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Every published table.")] = False,
    stage: Annotated[
        Literal["auto", "native", "vm", "live"],
        typer.Option(
            help="Where lines are measured. auto chooses the best available stage for each line:"
            " whole kernels if KVM runs guests, else the kernel's objects in a program, else the"
            " running kernel."
        ),
    ] = "auto",
    records: Annotated[
        list[str] | None,
        typer.Option(
            "--record",
            metavar="RUN",
            help="Judge by this record and measure nothing; repeatable.",
            autocompletion=complete.runs,
        ),
    ] = None,
    runs_in: RunsOption = None,
    rows: Annotated[
        bool,
        typer.Option(
            "--rows", help="Print each line of all tables, why it may differ, and what bounds it."
        ),
    ] = False,
    launches: LaunchesOption = None,
    rounds: RoundsOption = None,
    seed: SeedOption = None,
    as_json: AnswerJsonOption = False,
    html: Annotated[str | None, html_option("replicate.html")] = None,
    force: ForceOption = False,
    output: OutputOption = None,
    quiet: QuietOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the runs that it takes; do nothing.")
    ] = False,
    _help_all: HelpAllOption = False,
) -> None:
    """Test whether published tables hold here: each line published and measured, and a verdict.

    One run of an experiment measures all tables that share it; `--record` takes none. A line that
    cannot be measured here states the reason. A table's verdict comes from lines that claim 10 % or
    more; other lines are controls and are listed apart.

    Exit status: 0 every claim that could be tried holds, 1 one fails (`contradicts`; `weaker` lines
    and controls do not fail), 2 usage, 3 none could be tried here (`not-run`, or `modelled`),
    4 none fails but one is inconclusive, 5 a sample's memory was wrong, 6 a tool failed.
    """
    if records and dry_run:
        raise BadUsage("--record measures nothing: there is nothing to plan with --dry-run")
    if records and output:
        raise BadUsage(f"--output {output}: --record measures nothing; --runs names where it is")
    if runs_in and not records:
        raise BadUsage(f"--runs {runs_in}: it is for --record; --output names where a run goes")
    if as_json and html is not None:
        raise BadUsage(f"--json and {HTML} are two answers; ask for one of them")
    check_force(html, force=force)
    show = partial(_print, as_json=as_json, rows=rows)
    if html is not None:  # asked before hours of measuring
        path = place_of(html, "replicate.html", force=force)
        show = partial(_write, path=path, force=force)
    _replicate(
        _choose(tables or [], every=every),
        _Asked(
            stage, tuple(records or ()), launches, rounds, seed, runs_dir(runs_in or output), quiet
        ),
        dry_run=dry_run,
        show=show,
    )


@dataclass(frozen=True)
class _Asked:
    """How tables are to be replicated."""

    stage: Literal["auto", "native", "vm", "live"]
    records: tuple[str, ...]
    launches: int | None
    rounds: int | None
    seed: int | None
    runs: Path
    quiet: bool


def _replicate(
    tables: Sequence["Table"],
    asked: _Asked,
    *,
    dry_run: bool,
    show: Callable[[Sequence["Replication"]], None],
) -> None:
    from ream.experiment import named  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415
    from ream.record.machine import read_machine  # noqa: PLC0415
    from ream.record.record import Record  # noqa: PLC0415
    from ream.replicate.outcome import JudgedRecord, one_machine, replicate_all  # noqa: PLC0415
    from ream.replicate.perform import Performed, perform, plan_lines  # noqa: PLC0415
    from ream.replicate.plan import Plan, make_plan  # noqa: PLC0415

    experiments = [named(name) for name in names()]
    for table in tables:
        if table.experiment not in {one.name for one in experiments}:
            there = ", ".join(one.name for one in experiments)
            raise BadUsage(f"{table.id}: no experiment {table.experiment!r}; there is {there}")
    if asked.records:
        plan, done = Plan((), {}), Performed()
        done.sources += [JudgedRecord.of(Record.load(name, asked.runs)) for name in asked.records]
        one_machine(done.sources)
    else:
        plan = make_plan(
            tables,
            experiments,
            stage=asked.stage,
            kvm_fault=_kvm_fault,
            launches=asked.launches,
            rounds=asked.rounds,
        )
        seed = chosen_seed(asked.seed)
        if dry_run:
            _print_plan(plan, list(plan_lines(plan.runs, seed=seed, directory=asked.runs)))
            return
        done = perform(
            plan.runs, seed=seed, directory=asked.runs, reporter=Reporter(quiet=asked.quiet)
        )
    # Records speak for themselves: the same give the same bytes, wherever they are read.
    last = max(done.sources, key=lambda source: source.name, default=None)
    machine = read_machine() if last is None else last.machine
    replications = replicate_all(
        tables, done.sources, experiments, machine, absent=plan.absent, failed=done.absent
    )
    show(replications)
    if done.failure is not None:
        raise done.failure
    _exit([one.word for one in replications])


def _kvm_fault() -> str | None:
    """Why no guest runs under KVM here: also that there is nothing to boot one with."""
    from ream.stage.accel import kvm_fault  # noqa: PLC0415

    try:
        return kvm_fault(cache_dir())
    except CannotRunHere as cause:
        return str(cause)


def _print_plan(plan: "Plan", lines: Sequence[str]) -> None:
    from ream.session.dry_run import wrapped  # noqa: PLC0415

    for line in wrapped(f"not run     {stage} stage: {why}" for stage, why in plan.absent.items()):
        print(line)
    for line in lines or ["run         none: no row of ours can be run here for these tables"]:
        print(line)


def _choose(names: Sequence[str], *, every: bool) -> tuple["Table", ...]:
    """The tables of those names, or of those files, each once."""
    from ream.published import load_file, load_tables, lookup  # noqa: PLC0415

    known = load_tables()
    if every == bool(names):
        raise BadUsage(
            "name published tables (`ream list EXPERIMENT` shows those of an experiment) or .toml"
            " files, or give --all alone"
        )
    if every:
        return known
    chosen: dict[str, Table] = {}
    for name in names:
        found = load_file(Path(name)) if name.endswith(".toml") else (lookup(known, name),)
        for table in found:
            if chosen.setdefault(table.id, table) != table:
                raise BadUsage(f"{name}: another table is called {table.id}, too")
    return tuple(chosen.values())


def _print(replications: Sequence["Replication"], *, as_json: bool, rows: bool) -> None:
    from ream.replicate import contract, render  # noqa: PLC0415

    if as_json:
        print(json.dumps(contract.to_object(replications), indent=1))
    else:
        sys.stdout.write(render.render(replications, rows=rows))


def _write(replications: Sequence["Replication"], *, path: Path | None, force: bool) -> None:
    from ream.replicate.sheet import of_tables  # noqa: PLC0415

    write_sheet(path, of_tables(replications), force=force)


def _exit(words: Sequence["Word"]) -> None:
    """End with the code of the worst table; where none could be tried, that is the result."""
    if "contradicts" in words:
        raise typer.Exit(ClaimFails.exit_code)
    if "inconclusive" in words:
        raise typer.Exit(Inconclusive.exit_code)
    if set(words) <= {"not-run", "modelled"}:
        raise typer.Exit(CannotRunHere.exit_code)
