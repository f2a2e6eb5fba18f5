# SPDX-License-Identifier: GPL-2.0-only
"""The words of `ream run` about how long it goes on, and what it goes on with."""

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ream.cli.app import runs_dir
from ream.cli.helped import CONTINUE, NATIVE, OTHER
from ream.errors import BadUsage
from ream.paths import cache_dir

if TYPE_CHECKING:
    from ream.measure.stable import Stable

UNTIL_STABLE = "--until-stable"
DEFAULT_PCT = "5"
WHOLE_PCT = 100
LEAST_CONTROL_PCT = 0.01

UntilStableOption = Annotated[
    str | None,
    typer.Option(
        UNTIL_STABLE,
        metavar="[=PCT]",
        rich_help_panel=CONTINUE,
        help=f"Launch again until every interval is within PCT ({DEFAULT_PCT}) per cent.",
    ),
]
ControlOption = Annotated[
    str | None,
    typer.Option(
        "--control",
        metavar="PCT",
        rich_help_panel=NATIVE,
        help="Also measure `before` slowed by PCT per cent, which must be found.",
    ),
]
MaxLaunchesOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        rich_help_panel=CONTINUE,
        help="With --until-stable: the most launches (default: 4 x --launches).",
    ),
]
MaxMinutesOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="M",
        rich_help_panel=CONTINUE,
        help="With --until-stable: start no launch after this many minutes.",
    ),
]
ResumeOption = Annotated[
    str | None,
    typer.Option(
        metavar="RUN",
        rich_help_panel=CONTINUE,
        help="Continue an interrupted run, or `last`, as it was requested.",
    ),
]
DiscardOption = Annotated[
    str | None,
    typer.Option(metavar="RUN", rich_help_panel=CONTINUE, help="Remove an interrupted run."),
]
CellOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|-",
        rich_help_panel=CONTINUE,
        help="Run a cell of `ream plan`; `-` is standard input.",
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        rich_help_panel=OTHER,
        help="No progress, no steps: results and errors only.",
    ),
]
VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", rich_help_panel=OTHER, help="Show every command that is run."),
]

_INSTEAD = ("resume", "discard", "cell")
_BESIDE = frozenset((*_INSTEAD, "output", "as_json", "dry_run", "quiet", "verbose"))


def with_defaults(argv: Sequence[str]) -> list[str]:
    """The command line, where an option that may stand alone has its default value."""
    end = argv.index("--") if "--" in argv else len(argv)
    return [
        f"{word}={DEFAULT_PCT}" if word == UNTIL_STABLE and at < end else word
        for at, word in enumerate(argv)
    ]


def show_more(verbose: bool) -> None:
    """Show every command, as the option before the command's name does."""
    if verbose:
        logging.getLogger().setLevel(logging.DEBUG)


def stable_of(
    within_pct: str | None, *, planned: int, max_launches: int | None, max_minutes: float | None
) -> "Stable | None":
    """How long to go on after the planned launches; raises BadUsage for what cannot be meant."""
    from ream.measure.stable import Stable  # noqa: PLC0415

    if within_pct is None:
        if max_launches is not None or max_minutes is not None:
            raise BadUsage("--max-launches and --max-minutes: they bound --until-stable; give it")
        return None
    try:
        pct = float(within_pct)
    except ValueError:
        pct = 0.0
    if not 0 < pct < WHOLE_PCT:  # NaN is in no range
        raise BadUsage(f"{UNTIL_STABLE}={within_pct}: a number of per cent between 0 and 100")
    if max_minutes is not None and not math.isfinite(max_minutes):
        raise BadUsage(f"--max-minutes {max_minutes}: a number of minutes; leave it out for no end")
    if max_launches is not None and max_launches < planned:
        raise BadUsage(
            f"--max-launches {max_launches}: {planned} are planned already; --launches"
            f" {max_launches} plans fewer"
        )
    return Stable(pct, max_launches, max_minutes)


def control_of(slowed_pct: str | None, stage: str, *, counted: bool = False) -> float | None:
    """The share by which the positive control is slowed; raises BadUsage for what cannot be."""
    if slowed_pct is None:
        return None
    if counted:
        raise BadUsage(f"--control {slowed_pct}: what is counted has no time to slow; time it")
    if stage != "native":
        raise BadUsage(
            f"--control {slowed_pct}: the native stage alone can slow a variant by a known share;"
            " a guest's or the running kernel's own time is not ours to add to"
        )
    try:
        pct = float(slowed_pct.strip().removesuffix("%"))
    except ValueError:
        pct = 0.0
    if not LEAST_CONTROL_PCT <= pct <= WHOLE_PCT:  # NaN is in no range
        raise BadUsage(
            f"--control {slowed_pct}: give per cent from {LEAST_CONTROL_PCT} to {WHOLE_PCT}, as 3%"
        )
    return pct / 100


def instead_of_a_plan(context: typer.Context) -> str | None:
    """Which of --resume, --discard and --cell was given; None if none was.

    Raises BadUsage naming what else was: they take everything from what there is.
    """
    given = [name for name in context.params if _is_given(context, name)]
    chosen = [name for name in given if name in _INSTEAD]
    if not chosen:
        return None
    others = [name for name in given if name not in _BESIDE] + chosen[1:]
    if others:
        words = ", ".join(_word(context, name) for name in others)
        raise BadUsage(f"--{chosen[0]} takes everything from the plan: leave out {words}")
    return chosen[0]


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and not source.name.startswith("DEFAULT")


def _word(context: typer.Context, name: str) -> str:
    for parameter in context.command.params:
        if parameter.name == name:
            return parameter.opts[0] if parameter.opts[0].startswith("-") else name.upper()
    return name


def go_on(chosen: str, *, output: Path | None, **given: Any) -> None:
    """Do what --resume, --discard or --cell says.

    Raises BadUsage if there is no such run, and what running raises.
    """
    if chosen == "cell":
        _do_cell(
            given["cell"],
            output,
            as_json=given["as_json"],
            dry_run=given["dry_run"],
            quiet=given["quiet"],
        )
        return
    from ream.cli.measure import run_request  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415
    from ream.record.partial import discard, find_partial, run_of  # noqa: PLC0415
    from ream.session.plan import resumed_request  # noqa: PLC0415

    runs = runs_dir(output)
    if given["dry_run"]:
        _refuse_running(find_partial(given[chosen], runs))
    if chosen == "discard":
        if given["dry_run"]:
            print(f"remove {find_partial(given['discard'], runs)}")
            return
        run = discard(given["discard"], runs)
        Reporter(quiet=given["quiet"]).step(f"{run}: removed")
        return
    partial = find_partial(given["resume"], runs)
    if given["dry_run"]:
        print(f"resume      {run_of(partial)}, in {partial}")
    run_request(
        resumed_request(partial, cache=cache_dir()),
        as_json=given["as_json"],
        dry_run=given["dry_run"],
        quiet=given["quiet"],
    )


def _do_cell(cell: str, output: Path | None, *, as_json: bool, dry_run: bool, quiet: bool) -> None:
    from ream.cli.measure import print_summary, run_request  # noqa: PLC0415
    from ream.fleet.run import asked  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415
    from ream.record.record import Record  # noqa: PLC0415
    from ream.report.contract import Summary  # noqa: PLC0415

    found = asked(cell, output=output, step=Reporter(quiet=quiet).step, dry_run=dry_run)
    if isinstance(found, Record):
        summary = Summary.from_object(found.run, source=str(found.path))
        print_summary(summary, as_json=as_json)
    else:
        run_request(found, as_json=as_json, dry_run=dry_run, quiet=quiet)


def _refuse_running(partial: Path) -> None:
    """Raise BadUsage if a process has the run: a dry run must not promise what would be refused."""
    from ream.record.partial import interrupted, run_of  # noqa: PLC0415

    if any(one.running and one.path == partial for one in interrupted(partial.parent)):
        raise BadUsage(f"{run_of(partial)}: another process is measuring for it; wait for its end")
