# SPDX-License-Identifier: GPL-2.0-only
"""`ream check`: the gate for CI."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ream.cli import complete
from ream.cli.app import AnswerJsonOption, RunsOption, app, runs_dir
from ream.cli.history import RUNS_HELP
from ream.errors import ClaimFails, Inconclusive, shown

STDOUT = Path("-")
SLOWER = "5%"
"""The slowdown that passes the check, unless another limit is given."""


@app.command()
def check(
    record: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help=f"The run to judge. {RUNS_HELP}", autocompletion=complete.runs
        ),
    ] = "last",
    *,
    baseline: Annotated[
        str,
        typer.Option(
            metavar="RUN", help="The run to compare it with.", autocompletion=complete.runs
        ),
    ],
    max_regression: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="The largest slowdown that passes: 5%; with --counts the largest growth: 0.1%.",
        ),
    ] = None,
    counts: Annotated[
        bool,
        typer.Option("--counts", help="Compare what runs of `ream run --count` executed."),
    ] = False,
    variants: Annotated[
        list[str] | None,
        typer.Option("--variant", metavar="NAME", help="Only this variant; repeatable."),
    ] = None,
    unlike: Annotated[
        bool, typer.Option("--unlike", help="Judge the runs even if they are not alike.")
    ] = False,
    ktap: Annotated[
        Path | None, typer.Option(metavar="FILE|-", help="Write KTAP version 1 as well.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE|-", help="Write JUnit XML as well.")
    ] = None,
    as_json: AnswerJsonOption = False,
    runs_in: RunsOption = None,
) -> None:
    """Fail if a run is slower than a baseline allows: a gate for CI.

    The ratio to `before` of each row and variant is compared with the baseline's. It fails only if
    the change and its whole 95 % interval are beyond the limit, passes if the whole interval is
    within it, and is otherwise inconclusive: take more launches. With --counts it fails if any
    quantity of any variant has grown beyond the limit. With `-` a format goes to standard output
    in place of the table.

    Exit status: 0 within the limit, 1 slower than allowed, 2 usage or runs that are not alike or
    cannot be read, 4 inconclusive or nothing to compare, 6 a sample is damaged.
    """
    from ream.experiment import recorded  # noqa: PLC0415
    from ream.files import write_whole  # noqa: PLC0415
    from ream.gate import words  # noqa: PLC0415
    from ream.gate.counts import LIMIT, gate_counts  # noqa: PLC0415
    from ream.gate.gate import gate, parse_percent  # noqa: PLC0415
    from ream.record.record import Record  # noqa: PLC0415

    to_stdout = [one for one in (ktap, junit) if one == STDOUT]
    if len(to_stdout) + as_json > 1:
        raise typer.BadParameter("only one of --ktap -, --junit - and --json has standard output")
    limit_pct = parse_percent(max_regression or (LIMIT if counts else SLOWER))
    runs = runs_dir(runs_in)
    found = (gate_counts if counts else gate)(
        Record.load(record, runs),
        Record.load(baseline, runs),
        limit_pct,
        variants=[recorded(one) for one in variants or ()],
        unlike=unlike,
    )
    for place, render in ((ktap, words.to_ktap), (junit, words.to_junit)):
        if place == STDOUT:
            sys.stdout.write(render(found))
        elif place is not None:
            # A CI job writes the same file each time.
            write_whole(place, render(found).encode(), force=True)
    if as_json:
        print(json.dumps(words.to_object(found), indent=1))
    elif not to_stdout:
        sys.stdout.write(words.text(found))
    if found.word == "fail":
        raise shown(ClaimFails(f"{found.run} against {found.baseline}: {words.in_short(found)}"))
    if found.word == "inconclusive":
        error = Inconclusive(f"{found.run} against {found.baseline}: {words.in_short(found)}")
        if not counts:
            error.add_note("more launches make intervals narrower")
        raise shown(error)
