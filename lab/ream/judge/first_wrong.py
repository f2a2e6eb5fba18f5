# SPDX-License-Identifier: GPL-2.0-only
"""With which patch of a series it begins to be wrong."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ream.errors import ReamError, VerificationFailed, WrongVariant
from ream.experiment import BEFORE, IMPLIED
from ream.kernel.cache import room
from ream.kernel.series import Series, prefixes
from ream.progress import Reporter
from ream.session.request import Request
from ream.session.run import run_session
from ream.variants import Variant


def of_series(cause: ReamError) -> bool:
    """Whether an error says that the series is wrong, and not the kernel that it is for."""
    wrong = isinstance(cause, VerificationFailed)
    return wrong and not (isinstance(cause, WrongVariant) and cause.variant in IMPLIED)


def first_wrong(request: Request, series: Series, name: str, reporter: Reporter) -> int | None:
    """The number of the first patch at which a series is wrong in this run, from 1.

    request: the run in which it is wrong as a whole, under `name`. As first_bad(); no record stays.
    """
    beginnings = prefixes(series)
    return first_bad(
        beginnings, lambda beginning: _is_wrong(request, beginning, name, reporter), reporter
    )


def first_bad(
    beginnings: Sequence[Series], is_wrong: Callable[[Series], bool], reporter: Reporter
) -> int | None:
    """The number of the first beginning of a series that is wrong, from 1.

    The last one is. Halves what is left, as git bisect does, and so takes a series that is wrong at
    one patch for wrong at every later one. None if a beginning of the series cannot be run, which
    hides it, or if nothing is wrong when it is run again: what is wrong only now and then is not
    laid to a patch.
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
