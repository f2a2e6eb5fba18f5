# SPDX-License-Identifier: GPL-2.0-only
"""What there is: `ream list`, `which`, `size`, `doctor`, `restore`."""

import json
import sys
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ream.cli import complete
from ream.cli.app import BaseOption, JsonOption, TreeOption, app, given_series
from ream.errors import BadUsage
from ream.folders import given_file, names
from ream.width import width

ROOMY = 80
"""Columns from which on text goes on below its own column."""
NARROW_INDENT = 6

if TYPE_CHECKING:
    from ream.experiment import Experiment


@app.command("list")
def list_experiments(
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="Only this one: its name, or a .toml file of your own.",
            autocompletion=complete.experiments,
        ),
    ] = None,
) -> None:
    """List the experiments, their rows and variants, and the published tables.

    Exit status: 0; 2 if there is no such experiment, or its file has a fault.
    """
    from ream.experiment import load  # noqa: PLC0415
    from ream.published import load_tables  # noqa: PLC0415

    listed = [load(given_file(name)) for name in ([experiment] if experiment else names())]
    for one in listed:
        _print_experiment(one)
    of = {one.name for one in listed}
    print("\npublished tables")
    for table in load_tables():
        if table.experiment in of:
            _print(f"  {table.id:28} {table.author}: {table.title}", 31)


def _print_experiment(experiment: "Experiment") -> None:
    _print(f"{experiment.name}: {experiment.question}", 2)
    _print(f"  variants  {', '.join(experiment.variant_names())}", 12)
    for row in experiment.rows:
        where = "" if row.stage == "native" else f"{row.stage}: "
        asked = "; only with --row" if row.on_request else ""
        _print(f"  {where + row.name:22} {row.title()}{asked}", 25)


def _print(line: str, indent: int) -> None:
    """One line, which goes on below its last column where it is too long."""
    if width() < ROOMY:
        indent = min(indent, NARROW_INDENT)
    wrapped = textwrap.wrap(line, width(), subsequent_indent=" " * indent, break_on_hyphens=False)
    print("\n".join(wrapped))


@app.command()
def which(
    series: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATCH...", help="Patches, folders, mailboxes or commits, applied together."
        ),
    ],
    *,
    base: BaseOption = None,
    tree: TreeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say which experiments a patch reaches: which functions it changes that which rows execute.

    Objects are compared function by function, and each row of an experiment that has any of what
    differs is run once on the base with a breakpoint at every function. Nothing is timed, and no
    record is made.

    Exit status: 0, also where it reaches none; 2 usage, or a patch that does not apply.
    """
    from ream.judge import reach  # noqa: PLC0415
    from ream.kernel.source import fetch_tree  # noqa: PLC0415
    from ream.paths import cache_dir  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415

    cache, reporter = cache_dir(), Reporter()
    given, wanted = given_series(series, base, tree)
    patches = tuple(patch for one in given for patch in one.patches)
    source = fetch_tree(wanted, cache=cache, step=reporter.step)
    found = reach.find_reach(patches, source, cache=cache, reporter=reporter)
    if as_json:
        print(json.dumps([asdict(one) for one in found.experiments], indent=1))
        return
    for label, text in reach.lines(found):
        _print(f"{label:16} {text}", 17)


@app.command("size")
def size_of(
    series: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATCH...", help="Patches, folders, mailboxes or commits, applied together."
        ),
    ],
    *,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="NAME",
            help="Only this configuration: native, vm or distro. Default: all three.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List every symbol whose size differs.")
    ] = False,
    base: BaseOption = None,
    tree: TreeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say how many bytes a patch adds to the kernel's code and data, function by function.

    The objects of mm/, and of every other folder in which the patch has a source, are compiled with
    and without it. A first time takes minutes for each configuration; nothing is measured.

    Exit status: 0, also where nothing grows; 2 usage, or a patch that does not apply.
    """
    from ream.paths import cache_dir  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415
    from ream.session.size import CONFIGURATIONS, MOST_SYMBOLS, lines, size  # noqa: PLC0415

    if unknown := [name for name in config or () if name not in CONFIGURATIONS]:
        raise BadUsage(f"--config {unknown[0]}: not one of {', '.join(CONFIGURATIONS)}")
    found = {}
    asked = tuple(config or CONFIGURATIONS)
    given, wanted = given_series(series, base, tree)
    for name, one in size(given, wanted, asked, cache=cache_dir(), reporter=Reporter()):
        found[name] = asdict(one)
        if not as_json:
            print("\n".join(lines(name, one, most=None if every else MOST_SYMBOLS)))
    if as_json:
        print(json.dumps(found, indent=1))


@app.command()
def doctor(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as one JSON object.")
    ] = False,
) -> None:
    """Say what can run on this machine, what cannot, why, and what to do about each.

    Exit status: 0 the native stage can run, 3 it cannot.
    """
    from ream.doctor import examine  # noqa: PLC0415

    findings = examine()
    if as_json:
        print(json.dumps({"schema": 1, "findings": [asdict(one) for one in findings]}, indent=1))
    else:
        for finding in findings:
            _print(f"{finding.state:5} {finding.subject:22} {finding.text}", 29)
            if finding.fix is not None:  # in one line, to be pasted
                indent = " " * (29 if width() >= ROOMY else NARROW_INDENT)
                print(f"{indent}to mend it: {finding.fix}")
    if any(finding.state == "NO" for finding in findings):
        raise typer.Exit(3)


@app.command()
def restore(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be put back, and change nothing.")
    ] = False,
) -> None:
    """Put back the settings of this machine that a killed run of the live stage left changed.

    A run that has not ended yet is waited for, up to ten seconds.

    Exit status: 0 put back, or there was nothing to do, 3 a run is under way, 6 a setting could not
    be written.
    """
    from ream.session.restore import plan_restore, restore_settings  # noqa: PLC0415

    if dry_run:
        print("\n".join(plan_restore()))
        return
    raise typer.Exit(restore_settings(lambda text: print(f"ream: {text}", file=sys.stderr)))
