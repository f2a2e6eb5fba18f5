# SPDX-License-Identifier: GPL-2.0-only
"""Finds the first patch at which a series is wrong."""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from ream.errors import ReamError, VerificationFailed, WrongVariant
from ream.experiment import BEFORE, IMPLIED
from ream.kernel.cache import room
from ream.kernel.series import Series, prefixes
from ream.progress import Reporter
from ream.session.request import Request
from ream.session.run import run_session
from ream.variants import Variant


def of_series(cause: ReamError) -> bool:
    """Whether an error blames the series, and not the kernel that it is for."""
    wrong = isinstance(cause, VerificationFailed)
    return wrong and not (isinstance(cause, WrongVariant) and cause.variant in IMPLIED)


ALSO_OF_RUN = ("--base", "--tree", "--config")
"""Options of `ream judge` that `ream run` also has, with the same meaning."""


def row_alone(request: Request, said: str, reproduce: str) -> tuple[str, str]:
    """Return two lines, the second with the command that runs only the row that was wrong.

    said: what was wrong; it begins with the name of the row or of an edge case. reproduce: the
    command line of the judgement, for other machines.
    """
    _, _, *given = shlex.split(reproduce) or ("ream", "judge")
    subject = next(iter(given), "-")
    words = ["ream", "run", request.experiment.name]
    words += ["--series", "PATCH" if subject.startswith("-") else subject]
    named = re.split(r"[:\s]", said, maxsplit=1)[0]
    rows = [row.name for row in request.experiment.rows]
    words += ["--row", named if named in rows else rows[0]]  # edge cases are verified with any row
    options = dict(pairwise(given))
    if "--base-ref" in options and "--tree" in options:
        options["--tree"] += f"@{options['--base-ref']}"
    words += [word for name in ALSO_OF_RUN if name in options for word in (name, options[name])]
    words += [] if request.count is None else ["--count"]
    words += ["--seed", str(request.seed)]
    why = f"only the oracle of {request.experiment.name} finds it, and no program shows it; again:"
    return why, f"  {shlex.join(words)}"


def first_wrong(request: Request, series: Series, name: str, reporter: Reporter) -> int | None:
    """Return the number, from 1, of the first patch at which a series is wrong in this run.

    request: the run in which the whole series is wrong as the variant `name`. See first_bad() for
    how it searches and when it returns None. No record is kept.
    """
    beginnings = prefixes(series)
    return first_bad(
        beginnings, lambda beginning: _is_wrong(request, beginning, name, reporter), reporter
    )


def first_bad(
    beginnings: Sequence[Series], is_wrong: Callable[[Series], bool], reporter: Reporter
) -> int | None:
    """Return the number, from 1, of the first prefix of a series that is wrong.

    The last prefix is wrong. The search halves the range as git bisect does, so it assumes that a
    series which is wrong at one patch is wrong at every later one. None if a prefix cannot be run,
    or if nothing is wrong when it is run again: a fault that shows only sometimes is not blamed on
    a patch.
    """
    if len(beginnings) == 1:
        return 1
    right, wrong = 0, len(beginnings) + 1
    while wrong - right > 1:
        middle = (right + wrong) // 2
        reporter.step(f"is it wrong with {middle} of {len(beginnings)} patches?")
        try:
            middle_is_wrong = is_wrong(beginnings[middle - 1])
        except ReamError as cause:
            reporter.step(f"not known: {str(cause).splitlines()[0]}")
            return None
        right, wrong = (right, middle) if middle_is_wrong else (middle, wrong)
    return wrong if wrong <= len(beginnings) else None


def _is_wrong(request: Request, beginning: Series, name: str, reporter: Reporter) -> bool:
    variants = (*(Variant(one, ()) for one in IMPLIED), Variant(name, (beginning,), BEFORE))
    with room(request.cache, reporter.step) as runs:
        try:
            its = replace(request, variants=variants, runs=runs, stable=None)
            outcome = run_session(its, reporter)
        except ReamError as cause:
            if of_series(cause):
                return True
            raise
    return name in outcome.summary.wrong
