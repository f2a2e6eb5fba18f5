# SPDX-License-Identifier: GPL-2.0-only
"""What there is: `ream which`, `doctor`, `restore`."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ream.cli.app import BaseOption, JsonOption, TreeOption, app, given_series
from ream.width import NARROW_INDENT, ROOMY, print_hanging, width


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
        print_hanging(f"{label:16} {text}", 17)


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
            print_hanging(f"{finding.state:5} {finding.subject:22} {finding.text}", 29)
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
