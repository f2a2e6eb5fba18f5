# SPDX-License-Identifier: GPL-2.0-only
"""What a command line asked for is measured, and printed."""

import json
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ream.errors import VerificationFailed, shown

if TYPE_CHECKING:
    from ream.report.contract import Summary
    from ream.session.request import Request


def run_request(request: "Request", *, as_json: bool, dry_run: bool, quiet: bool = False) -> None:
    """Do what is asked, and print the table or the object; or say what would be done.

    Raises what `run_session` raises, and VerificationFailed in the end if it went on without a
    series that is wrong.
    """
    from dataclasses import replace  # noqa: PLC0415

    from ream.progress import Reporter  # noqa: PLC0415
    from ream.record.record import ANNOTATED  # noqa: PLC0415
    from ream.session.dry_run import plan_text  # noqa: PLC0415
    from ream.session.run import run_session  # noqa: PLC0415

    if dry_run:
        print(plan_text(request))
        return
    reporter = Reporter(quiet=quiet)
    request = replace(request, command=request.command or command_line(request.seed))
    outcome = run_session(request, reporter)
    print_summary(outcome.summary, as_json=as_json)
    if not as_json and (listing := outcome.path / ANNOTATED).exists():
        sys.stdout.write(f"\n{listing.read_text()}")
    reporter.step(f"record: {outcome.path}")
    if outcome.summary.wrong:
        raise shown(VerificationFailed("\n".join(outcome.summary.wrong_words())))


def print_summary(summary: "Summary", *, as_json: bool) -> None:
    """The table of a run, or its object."""
    from ream.report import table  # noqa: PLC0415

    if as_json:
        print(json.dumps(summary.to_object(), indent=1))
    else:
        sys.stdout.write(table.overview(summary))


def command_line(seed: int, argv: Sequence[str] | None = None) -> str:
    """The command line that repeats this run, seed and all."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not any(word == "--seed" or word.startswith("--seed=") for word in words):
        words += ["--seed", str(seed)]
    return shlex.join(["ream", *words])
