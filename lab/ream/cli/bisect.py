# SPDX-License-Identifier: GPL-2.0-only
"""`ream bisect`: the commit that changed what a row takes."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ream.cli import complete
from ream.cli.app import (
    AnswerJsonOption,
    ExperimentArgument,
    LaunchesOption,
    OutputOption,
    RoundsOption,
    SeedOption,
    app,
    chosen_seed,
    runs_dir,
)
from ream.cli.continued import QuietOption
from ream.cli.measure import command_line
from ream.counted import counted
from ream.errors import BadUsage, Inconclusive
from ream.folders import given_file
from ream.paths import cache_dir


@app.command()
def bisect(
    experiment: ExperimentArgument = None,
    *,
    row: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The row that became slower or faster.",
            autocompletion=complete.rows,
        ),
    ],
    tree: Annotated[Path, typer.Option(metavar="DIR", help="A git work tree of the kernel.")],
    good: Annotated[str, typer.Option(metavar="REV", help="A commit before the change.")],
    bad: Annotated[str, typer.Option(metavar="REV", help="A commit after the change.")],
    count: Annotated[
        bool,
        typer.Option(
            "--count",
            help="Decide by what is executed, counted exactly under an emulator, instead of time.",
        ),
    ] = False,
    launches: LaunchesOption = None,
    rounds: RoundsOption = None,
    seed: SeedOption = None,
    as_json: AnswerJsonOption = False,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """Find the commit that made a row slower, or faster, by `git bisect` with measured verdicts.

    Each step measures the good commit, the bad one and the one in question in one program. It is
    bad if its whole interval is on the bad one's side of the middle between the two, good if on the
    other; else it is launched up to four times as often, and then skipped. Where one CPU does the
    work its CPU time is compared, which other programs disturb less. With --count, instructions
    decide or, where good and bad execute as many, what they differ in, such as locked operations. A
    commit that does not build, or does not do what the oracle says, is skipped. Every step's record
    is kept. The work tree and what it has checked out stay as they are.

    Exit status: 0 found, 2 usage, 3 cannot run here, 4 good and bad do not differ or the commits
    that were skipped hide which it is, 5 the good or the bad kernel is wrong, 6 a tool failed.
    """
    from ream.experiment import load  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415
    from ream.session import bisect as hunt  # noqa: PLC0415
    from ream.session.counting import SEED, once  # noqa: PLC0415
    from ream.session.request import CountOptions, Request  # noqa: PLC0415

    if not (tree / ".git").exists():
        raise BadUsage(f"--tree {tree}: not a git work tree")
    whole = load(given_file(experiment)).at("native")
    asked = whole.only([row], whole.rows)
    if len(asked.rows) != 1:
        raise BadUsage(f"--row {row}: {counted(len(asked.rows), 'row')}; bisect looks at one")
    drawn = chosen_seed(SEED if count and seed is None else seed)
    asked = (
        once(asked, "native", launches=launches, rounds=rounds)
        if count
        else asked.resized(launches=launches or hunt.FIRST_LAUNCHES, rounds=rounds)
    )
    request = Request(
        experiment=asked,
        stage="native",
        variants=(),
        tree=tree,
        threads=None,
        seed=drawn,
        runs=runs_dir(output),
        cache=cache_dir(),
        command=command_line(drawn),
        count=CountOptions() if count else None,
    )
    found = hunt.bisect(request, good, bad, Reporter(quiet=quiet))
    if as_json:
        print(json.dumps(found.to_object(), indent=1))
    else:
        hunt.report(found, print)
    if len(found.commits) > 1:
        raise Inconclusive(f"the first bad one is among {counted(len(found.commits), 'commit')}")
